/** The status for a client whose request has the fault. In a response every fault is the replica's: 502. */
interface FaultRow {
  readonly status: 400 | 405 | 413 | 414 | 417 | 431 | 501;
  readonly message: string;
}

const row = (status: FaultRow['status'], message: string): FaultRow => ({ status, message });

/** All reasons to refuse a message. Names are stable: they are printed as `code` and logged. */
export const faults = {
  bad_method: row(400, 'The request line does not start with a method.'),
  bad_target: row(400, 'The request target is neither a path, an absolute http URL, nor * with OPTIONS.'),
  bad_version: row(400, 'The first line does not name HTTP/1.1 or HTTP/1.0.'),
  bad_status_line: row(400, 'The status line is malformed.'),
  bad_line_end: row(400, 'A line of the head ends in a bare CR or a bare LF.'),
  bad_field_name: row(400, 'A field name is empty or has characters that are not allowed, such as a space before the colon.'),
  bad_field_value: row(400, 'A field value has control characters.'),
  folded_field: row(400, 'A field is continued on a second line (obsolete line folding).'),
  forged_field: row(400, 'A field name turns into a framing or security field when its underscores are read as dashes.'),
  bad_host: row(400, 'An HTTP/1.1 request needs exactly one valid Host field, which agrees with the request target.'),
  bad_content_length: row(400, 'Content-Length is not one plain decimal number.'),
  both_lengths: row(400, 'Content-Length and Transfer-Encoding are both given.'),
  bad_transfer_encoding: row(400, 'Transfer-Encoding is not exactly "chunked", given once, in HTTP/1.1.'),
  unknown_transfer_coding: row(501, 'The only transfer coding that is understood is chunked.'),
  bad_connection: row(400, 'Connection names a field that may not be removed on the way, or is not a list of names.'),
  bad_expectation: row(417, 'The only expectation that is understood is 100-continue.'),
  method_not_allowed: row(405, 'CONNECT and TRACE are not served.'),
  line_too_long: row(414, 'The request line is too long.'),
  head_too_large: row(431, 'The head is too large.'),
  too_many_fields: row(431, 'The head has too many fields.'),
  bad_chunk: row(400, 'The chunked body is malformed.'),
  body_too_large: row(413, 'The body is larger than this service accepts.'),
  unasked_upgrade: row(400, 'The connection was switched to a protocol that was not requested.'),
  too_many_interim: row(400, 'There are too many interim responses.'),
} as const satisfies Record<string, FaultRow>;

/** The name of a fault. */
export type Fault = keyof typeof faults;
