import { chunkedLength, untilClose, type BodyLength } from './body-length.ts';
import type { Fault } from './faults.ts';
import { FieldKind } from './field-kinds.ts';
import { isWebSocketUpgrade, readFields, type HeadFields } from './head-fields.ts';
import type { HeadScanner } from './head-scanner.ts';

/** A response's head that passed every rule; also of an interim (1xx) response. */
export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  readonly minorVersion: 0 | 1;
  readonly fields: HeadFields;
  /** On the wire: 0 for HEAD, 204, 304 and 1xx, whatever the fields declare (RFC 9112, section 6.3). */
  readonly bodyLength: BodyLength;
  /** The connection may serve another request: the replica keeps it open, and no bytes can follow the body. */
  readonly isPersistent: boolean;
  /** 101 (Switching Protocols), as requested: the bytes that follow on the connection are no HTTP. */
  readonly isTunnel: boolean;
}

/** Validates and interprets the scanned lines. `isHead`: of a HEAD request. `isUpgrade`: of a WebSocket request. */
export function readResponseHead(scanner: HeadScanner, isHead: boolean, isUpgrade = false): ResponseHead | Fault {
  const { text, minorVersion, statusCode: status } = scanner;
  const fields = readFields(scanner);
  if (typeof fields === 'string') return fields;
  const isTunnel = status === 101;
  if (isTunnel && !(isUpgrade && isWebSocketUpgrade(fields))) return 'unasked_upgrade';
  const bodyLength = isTunnel ? untilClose : lengthOf(fields, status, isHead);
  const { connection } = fields;
  return {
    status,
    reason: text.slice(scanner.reasonStart, scanner.reasonEnd),
    minorVersion,
    fields,
    bodyLength,
    isPersistent:
      bodyLength !== untilClose &&
      !connection.close &&
      (minorVersion === 1 || connection.keepAlive) &&
      !mayBodyFollow(fields, status, isHead),
    isTunnel,
  };
}

/**
 * Whether a faulty replica may send a body after a head that allows none. A late body would answer the next request, of
 * another client. `Content-Length: 0` excludes a body.
 */
function mayBodyFollow(fields: HeadFields, status: number, isHead: boolean): boolean {
  if (isHead || status === 204 || status === 304) return fields.contentLength !== 0;
  return status < 200 && (fields.isChunked || (fields.contentLength ?? 0) > 0);
}

function lengthOf(fields: HeadFields, status: number, isHead: boolean): BodyLength {
  if (isHead || status < 200 || status === 204 || status === 304) return 0;
  if (fields.isChunked) return chunkedLength;
  return fields.contentLength ?? untilClose;
}

/** How long the replica announces to keep an idle connection (`Keep-Alive: timeout=5`), s. */
export function keepAliveSeconds(head: ResponseHead): number | undefined {
  return numberAfter(head.fields.firstOf(FieldKind.keepAlive), 'timeout=');
}

/** `Retry-After` in seconds; undefined when absent or given as a date. */
export function retryAfterSeconds(head: ResponseHead): number | undefined {
  return numberAfter(head.fields.firstOf(FieldKind.retryAfter), '');
}

function numberAfter(value: string | undefined, prefix: string): number | undefined {
  const at = value?.toLowerCase().indexOf(prefix) ?? -1;
  if (value === undefined || at < 0) return undefined;
  const seconds = Number.parseInt(value.slice(at + prefix.length), 10);
  return Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : undefined;
}
