import { describe, expect, test } from 'vitest';
import { readRequests } from '../../../test/support/http1-events.ts';
import { faults, type Fault } from './faults.ts';
import { defaultHeadLimits, type HeadLimits } from './limits.ts';
import { RequestParser, type RequestLine } from './request-parser.ts';

const get = (line: string): string => `GET / HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`;
const post = (lines: string, body = ''): string => `POST / HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n${body}`;
const chunked = (body: string): string => post('Transfer-Encoding: chunked', body);

type Rule = readonly [rule: string, bytes: string, fault: Fault];

const framing: readonly Rule[] = [
  ['Content-Length and Transfer-Encoding together', post('Content-Length: 3\r\nTransfer-Encoding: chunked', '0\r\n\r\n'), 'both_lengths'],
  ['Transfer-Encoding and Content-Length together', post('Transfer-Encoding: chunked\r\nContent-Length: 3', '0\r\n\r\n'), 'both_lengths'],
  ['a Content-Length with a plus sign', post('Content-Length: +3', 'abc'), 'bad_content_length'],
  ['a negative Content-Length', post('Content-Length: -3', 'abc'), 'bad_content_length'],
  ['a Content-Length with a leading zero', post('Content-Length: 03', 'abc'), 'bad_content_length'],
  ['a hexadecimal Content-Length', post('Content-Length: 0x3', 'abc'), 'bad_content_length'],
  ['a Content-Length with a fraction', post('Content-Length: 3.0', 'abc'), 'bad_content_length'],
  ['a Content-Length with an exponent', post('Content-Length: 3e0', 'abc'), 'bad_content_length'],
  ['a Content-Length with inner space', post('Content-Length: 3 3', 'abc'), 'bad_content_length'],
  ['a tab after a Content-Length', post('Content-Length: 3\t', 'abc'), 'bad_content_length'],
  ['an empty Content-Length', post('Content-Length:', 'abc'), 'bad_content_length'],
  ['a list as Content-Length', post('Content-Length: 3, 3', 'abc'), 'bad_content_length'],
  ['a Content-Length above 2^53-1', post('Content-Length: 9007199254740992', 'abc'), 'bad_content_length'],
  ['a Content-Length that overflows', post('Content-Length: 99999999999999999999', 'abc'), 'bad_content_length'],
  ['Content-Length given twice with the same value', post('Content-Length: 3\r\nContent-Length: 3', 'abc'), 'bad_content_length'],
  ['Content-Length given twice with other values', post('Content-Length: 3\r\ncontent-length: 4', 'abc'), 'bad_content_length'],
  ['another transfer coding', post('Transfer-Encoding: gzip'), 'unknown_transfer_coding'],
  ['another transfer coding before chunked', post('Transfer-Encoding: gzip, chunked'), 'unknown_transfer_coding'],
  ['an unknown transfer coding', post('Transfer-Encoding: xchunked'), 'unknown_transfer_coding'],
  ['an empty element before chunked', post('Transfer-Encoding: ,chunked'), 'bad_transfer_encoding'],
  ['chunked twice in one field', post('Transfer-Encoding: chunked, chunked'), 'bad_transfer_encoding'],
  ['chunked in two fields', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'), 'bad_transfer_encoding'],
  ['chunked before another coding', post('Transfer-Encoding: chunked, gzip'), 'bad_transfer_encoding'],
  ['identity before chunked', post('Transfer-Encoding: identity, chunked'), 'bad_transfer_encoding'],
  ['identity alone', post('Transfer-Encoding: identity'), 'bad_transfer_encoding'],
  ['a vertical tab before chunked', post('Transfer-Encoding: \vchunked'), 'bad_field_value'],
  ['a space before the colon of Transfer-Encoding', post('Transfer-Encoding : chunked'), 'bad_field_name'],
  ['a space within chunked', post('Transfer-Encoding: chun ked'), 'bad_transfer_encoding'],
  ['a comma after chunked', post('Transfer-Encoding: chunked,'), 'bad_transfer_encoding'],
  ['a vertical tab after chunked', post('Transfer-Encoding: chunked\v'), 'bad_field_value'],
  ['a tab after chunked', post('Transfer-Encoding: chunked\t'), 'bad_transfer_encoding'],
  ['a tab before chunked', post('Transfer-Encoding:\tchunked'), 'bad_transfer_encoding'],
  ['a no-break space before chunked', post('Transfer-Encoding: \u00a0chunked'), 'bad_transfer_encoding'],
  ['a parameter of chunked', post('Transfer-Encoding: chunked;q=1'), 'bad_transfer_encoding'],
  ['quotes around chunked', post('Transfer-Encoding: "chunked"'), 'bad_transfer_encoding'],
  ['an empty Transfer-Encoding', post('Transfer-Encoding:'), 'bad_transfer_encoding'],
  ['Transfer-Encoding on HTTP/1.0', 'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n', 'bad_transfer_encoding'],
];

const hosts: readonly Rule[] = [
  ['HTTP/1.1 without Host', 'GET / HTTP/1.1\r\n\r\n', 'bad_host'],
  ['two Host fields', get('Host: a'), 'bad_host'],
  ['two Host fields on HTTP/1.0', 'GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', 'bad_host'],
  ['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 'bad_host'],
  ['user information in Host', 'GET / HTTP/1.1\r\nHost: user@a\r\n\r\n', 'bad_host'],
  ['a list as Host', 'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n', 'bad_host'],
  ['a path in Host', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 'bad_host'],
  ['a port that is no number', 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n', 'bad_host'],
  ['a port out of range', 'GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n', 'bad_host'],
  ['a bracket that does not close', 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n', 'bad_host'],
  ['absolute-form that disagrees with Host', 'GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_host'],
  ['absolute-form with another port than Host', 'GET http://a:1/ HTTP/1.1\r\nHost: a:2\r\n\r\n', 'bad_host'],
  ['absolute-form without Host', 'GET http://a/ HTTP/1.1\r\n\r\n', 'bad_host'],
  ['absolute-form with user information', 'GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
];

const lines: readonly Rule[] = [
  ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n', 'method_not_allowed'],
  ['TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 'method_not_allowed'],
  ['a method with a bad character', 'G@T / HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_method'],
  ['a request line that starts with a space', ' GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_method'],
  ['a second empty line before the request', '\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_method'],
  ['a target without a slash', 'GET a HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['an asterisk without OPTIONS', 'GET * HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['a target of another scheme', 'GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['a fragment in the target', 'GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_version'],
  ['two spaces before the target', 'GET  / HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['two spaces before the version', 'GET /  HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_version'],
  ['a tab instead of a space', 'GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_method'],
  ['a byte above 0x7f in the target', 'GET /\u00fc HTTP/1.1\r\nHost: a\r\n\r\n', 'bad_target'],
  ['HTTP/0.9', 'GET /\r\n', 'bad_version'],
  ['HTTP/1.2', 'GET / HTTP/1.2\r\nHost: a\r\n\r\n', 'bad_version'],
  ['a version in lower case', 'GET / http/1.1\r\nHost: a\r\n\r\n', 'bad_version'],
  ['a version with more digits', 'GET / HTTP/1.10\r\nHost: a\r\n\r\n', 'bad_version'],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad_version'],
  ['a TLS hello', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', 'bad_method'],
  ['a bare LF after the request line', 'GET / HTTP/1.1\nHost: a\r\n\r\n', 'bad_line_end'],
  ['a bare CR after the request line', 'GET / HTTP/1.1\rHost: a\r\n\r\n', 'bad_line_end'],
];

const fields: readonly Rule[] = [
  ['obsolete line folding with a space', get('A: b\r\n c'), 'folded_field'],
  ['obsolete line folding with a tab', get('A: b\r\n\tc'), 'folded_field'],
  ['folding of the first field', 'GET / HTTP/1.1\r\n Host: a\r\n\r\n', 'folded_field'],
  ['a space before the colon', get('A : b'), 'bad_field_name'],
  ['a tab before the colon', get('Transfer-Encoding\t: chunked'), 'bad_field_name'],
  ['an empty field name', get(': b'), 'bad_field_name'],
  ['a line without a colon', get('abc'), 'bad_field_name'],
  ['a byte above 0x7f in a name', get('\u00c4: b'), 'bad_field_name'],
  ['a NUL in a name', get('A\u0000: b'), 'bad_field_name'],
  ['a bare LF in a value', get('A: b\nContent-Length: 3'), 'bad_line_end'],
  ['a bare CR in a value', get('A: b\rContent-Length: 3'), 'bad_line_end'],
  ['a bare LF at the end of the head', 'GET / HTTP/1.1\r\nHost: a\r\n\n', 'bad_line_end'],
  ['a NUL in a value', get('A: b\u0000c'), 'bad_field_value'],
  ['another control byte in a value', get('A: b\u0001c'), 'bad_field_value'],
  ['0x7f in a value', get('A: b\u007fc'), 'bad_field_value'],
  ['Content_Length', post('Content_Length: 3'), 'forged_field'],
  ['Transfer_Encoding', post('transfer_encoding: chunked'), 'forged_field'],
  ['X_Forwarded_For', get('X_Forwarded_For: 1.2.3.4'), 'forged_field'],
  ['X_Request_Id', get('X_Request_Id: a'), 'forged_field'],
  ['X_Svc_Replica', get('X_Svc_Replica: 1'), 'forged_field'],
  ['X_Real_IP', get('X_Real_IP: 1.2.3.4'), 'forged_field'],
  ['one underscore is enough', get('X-Forwarded_Proto: https'), 'forged_field'],
  ['Connection that nominates Host', get('Connection: close, Host'), 'bad_connection'],
  ['Connection that nominates Content-Length', get('Connection: content-length'), 'bad_connection'],
  ['Connection that nominates Transfer-Encoding', get('Connection: Transfer-Encoding'), 'bad_connection'],
  ['Connection that nominates Authorization', get('Connection: authorization'), 'bad_connection'],
  ['Connection that nominates Cookie', get('Connection: Cookie'), 'bad_connection'],
  ['Connection that nominates X-Forwarded-For', get('Connection: x-forwarded-for'), 'bad_connection'],
  ['Connection that nominates X-Forwarded-Proto', get('Connection: keep-alive, X-Forwarded-Proto'), 'bad_connection'],
  ['Connection that nominates X-Forwarded-Host', get('Connection: X-FORWARDED-HOST'), 'bad_connection'],
  ['Connection that nominates X-Request-Id', get('Connection: X-Request-Id'), 'bad_connection'],
  ['Connection that nominates X-Svc-Reason', get('Connection: x-svc-reason'), 'bad_connection'],
  ['a second Connection that nominates Host', get('Connection: close\r\nConnection: Host'), 'bad_connection'],
  ['Connection with a no-break space', get('Connection: \u00a0close'), 'bad_connection'],
  ['Connection that is no list of names', get('Connection: a b'), 'bad_connection'],
  ['Expect other than 100-continue', get('Expect: 200-ok'), 'bad_expectation'],
  ['a second Expect of another kind', get('Expect: 100-continue\r\nExpect: other'), 'bad_expectation'],
];

const chunks: readonly Rule[] = [
  ['a chunk size of 17 digits', chunked('00000000000000001\r\na\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a chunk size that overflows', chunked('ffffffffffffffff\r\na'), 'bad_chunk'],
  ['a chunk size with junk', chunked('3x\r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a chunk size with a sign', chunked('+3\r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a chunk size with 0x', chunked('0x3\r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a space after the chunk size', chunked('3 \r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['an empty chunk size', chunked('\r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['an empty chunk size with an extension', chunked(';a\r\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['chunk extensions over 256 bytes', chunked(`3;${'a'.repeat(257)}\r\nabc\r\n0\r\n\r\n`), 'bad_chunk'],
  ['chunk extensions over 256 bytes in sum', chunked(`1;${'a'.repeat(200)}\r\na\r\n1;${'b'.repeat(57)}\r\na\r\n0\r\n\r\n`), 'bad_chunk'],
  ['a bare LF in a chunk extension', chunked('3;a\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a bare LF after the chunk size', chunked('3\nabc\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a bare LF after the data', chunked('3\r\nabc\n0\r\n\r\n'), 'bad_chunk'],
  ['data longer than its chunk', chunked('3\r\nabcd\r\n0\r\n\r\n'), 'bad_chunk'],
  ['a last chunk without its final CRLF', chunked('0\r\n\n'), 'bad_line_end'],
  ['a folded trailer', chunked('0\r\nA: b\r\n c\r\n\r\n'), 'folded_field'],
  ['a trailer with a bare LF', chunked('0\r\nA: b\n\r\n'), 'bad_line_end'],
];

const sizes: readonly Rule[] = [
  ['a request line over 8 KiB', `GET /${'a'.repeat(8_179)} HTTP/1.1\r\nHost: a\r\n\r\n`, 'line_too_long'],
  ['a request line without end', `GET /${'a'.repeat(9_000)}`, 'line_too_long'],
  ['a method without end', 'A'.repeat(9_000), 'line_too_long'],
  ['a head over 32 KiB', get(`A: ${'b'.repeat(33_000)}`), 'head_too_large'],
  ['more than 100 fields', get(Array.from({ length: 100 }, (_, index) => `A${index}: b`).join('\r\n')), 'too_many_fields'],
  ['trailers over 32 KiB', chunked(`0\r\nA: ${'b'.repeat(33_000)}\r\n\r\n`), 'head_too_large'],
];

for (const [title, rules] of Object.entries({ framing, hosts, lines, fields, chunks, sizes })) {
  describe(`a request is refused: ${title}`, () => {
    test.each(rules)('%s', (_, bytes, fault) => {
      const { messages } = readRequests(bytes);
      expect(messages.map((message) => message.fault)).toEqual([fault]);
      // The result must be the same when each read has one byte.
      expect(
        readRequests(
          bytes,
          Array.from(bytes, (__, index) => index),
        ).messages.at(-1)?.fault,
      ).toBe(fault);
    });
  });
}

/** Parses the bytes under non-default limits. */
function outcome(bytes: string, limits: Partial<HeadLimits>): Fault | 'accepted' | 'awaited' {
  let result: Fault | 'accepted' | 'awaited' = 'awaited';
  const parser = new RequestParser(
    {
      requestHead: () => undefined,
      body: () => undefined,
      requestEnd: () => {
        result = 'accepted';
      },
      requestFault: (fault) => {
        result = fault;
      },
    },
    { ...defaultHeadLimits, ...limits },
  );
  parser.feed(Buffer.from(bytes, 'latin1'), 0);
  return result;
}

const ofLength = (bytes: number): string => `GET /${'a'.repeat(bytes - 14)} HTTP/1.1\r\nHost: a\r\n\r\n`;
const withTrailers = (trailers: string): string => chunked(`0\r\n${trailers}\r\n`);

describe('limits are exact and configurable', () => {
  const line = 'GET /0123456789 HTTP/1.1';
  const whole = `${line}\r\nHost: a\r\nA: b\r\n\r\n`;

  test('for the request line, without its end', () => {
    expect([outcome(whole, { lineBytes: line.length }), outcome(whole, { lineBytes: line.length - 1 })]).toEqual([
      'accepted',
      'line_too_long',
    ]);
    expect([outcome(ofLength(8_192), {}), outcome(ofLength(8_193), {})]).toEqual(['accepted', 'line_too_long']);
  });

  test('for the head, with the empty line', () => {
    expect([outcome(whole, { headBytes: whole.length }), outcome(whole, { headBytes: whole.length - 1 })]).toEqual([
      'accepted',
      'head_too_large',
    ]);
  });

  test('for the number of fields', () => {
    expect([outcome(whole, { fields: 2 }), outcome(whole, { fields: 1 })]).toEqual(['accepted', 'too_many_fields']);
  });

  test('for the trailers, with the same limits again', () => {
    expect(outcome(withTrailers('A: b\r\nB: c\r\n'), { fields: 2 })).toBe('accepted');
    expect(outcome(withTrailers('A: b\r\nB: c\r\nC: d\r\n'), { fields: 2 })).toBe('too_many_fields');
    expect(outcome(withTrailers(`A: ${'b'.repeat(80)}\r\n`), { headBytes: 80 })).toBe('head_too_large');
  });
});

test('each fault has the status that clients act upon', () => {
  expect({
    method_not_allowed: faults.method_not_allowed.status,
    line_too_long: faults.line_too_long.status,
    head_too_large: faults.head_too_large.status,
    too_many_fields: faults.too_many_fields.status,
    body_too_large: faults.body_too_large.status,
    bad_expectation: faults.bad_expectation.status,
    unknown_transfer_coding: faults.unknown_transfer_coding.status,
    both_lengths: faults.both_lengths.status,
  }).toEqual({
    method_not_allowed: 405,
    line_too_long: 414,
    head_too_large: 431,
    too_many_fields: 431,
    body_too_large: 413,
    bad_expectation: 417,
    unknown_transfer_coding: 501,
    both_lengths: 400,
  });
});

const head = (bytes: string): unknown => readRequests(bytes).messages[0]?.head;

describe('a request is accepted', () => {
  test('case, order, duplicates and inner white space of fields are kept', () => {
    const { messages } = readRequests('GET /x?y HTTP/1.1\r\nhOsT: a\r\nX-B:  1  2\t\r\nx-b: 3\r\nX-Empty:\r\n\r\n');
    expect(messages[0]?.fields).toEqual(['hOsT: a', 'X-B: 1  2', 'x-b: 3', 'X-Empty: ']);
  });

  test('a tab and bytes above 0x7f are allowed within a value', () => {
    const { messages } = readRequests(get('A: b\tc\u00fc'));
    expect(messages[0]?.fields).toEqual(['Host: a', 'A: b\tc\u00fc']);
  });

  test('underscores are allowed in names that imitate no guarded name', () => {
    expect(readRequests(get('User_Id: 1')).messages[0]).toMatchObject({ fields: ['Host: a', 'User_Id: 1'], isComplete: true });
  });

  test('a Content-Length may be as large as 2^53-1', () => {
    expect(head(post('Content-Length: 9007199254740991'))).toMatchObject({ bodyLength: Number.MAX_SAFE_INTEGER });
  });

  test('Host may be any valid host name', () => {
    for (const host of ['a', 'A.b-c', '10.0.0.1:8080', '[::1]', '[2001:db8::1]:443', 'a:', 'a_b']) {
      expect(head(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toMatchObject({ host });
    }
  });

  test('one empty line before the request is accepted', () => {
    expect(head('\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({ method: 'GET', path: '/' });
  });

  test('absolute-form that agrees with Host becomes origin-form', () => {
    expect(head('GET HTTP://A:80/x?y HTTP/1.1\r\nHost: a:80\r\n\r\n')).toMatchObject({ path: '/x?y', host: 'a:80' });
    expect(head('GET http://a?y HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({ path: '/?y' });
    expect(head('GET http://a HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({ path: '/' });
    expect(head('OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({ path: '*' });
    expect(head('OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n')).toMatchObject({ path: '*', host: '[::1]:80' });
  });

  test('persistence depends on the version and Connection', () => {
    expect(head('GET / HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({ isPersistent: true });
    expect(head('GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n')).toMatchObject({ isPersistent: false });
    expect(head('GET / HTTP/1.0\r\n\r\n')).toMatchObject({ isPersistent: false, minorVersion: 0 });
    expect(head('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')).toMatchObject({ isPersistent: true });
  });

  test('chunk extensions and forbidden trailers are dropped', () => {
    const body =
      '3;a="b;c"\r\nabc\r\n0000A;x\r\n0123456789\r\n0;y\r\nX-Sum: 1\r\nContent-Length: 3\r\nHost: b\r\nAuthorization: c\r\nX-Sum: 2\r\n\r\n';
    const [message] = readRequests(chunked(body)).messages;
    expect(message).toMatchObject({ body: 'abc0123456789', trailers: ['X-Sum', '1', 'X-Sum', '2'], isComplete: true });
  });

  test('consecutive requests on one connection are separated', () => {
    const bytes = `${post('Content-Length: 3', 'abc')}${chunked('1\r\nd\r\n0\r\n\r\n')}${get('A: b')}`;
    expect(readRequests(bytes).messages.map(({ body, isComplete }) => ({ body, isComplete }))).toEqual([
      { body: 'abc', isComplete: true },
      { body: 'd', isComplete: true },
      { body: '', isComplete: true },
    ]);
  });

  test('100 fields, a line of 8 KiB and a body of unusual method pass', () => {
    expect(readRequests(get(Array.from({ length: 99 }, (_, index) => `A${index}: b`).join('\r\n'))).messages[0]?.isComplete).toBe(true);
    expect(readRequests(`GET /${'a'.repeat(8_100)} HTTP/1.1\r\nHost: a\r\n\r\n`).messages[0]?.isComplete).toBe(true);
    expect(readRequests('GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab').messages[0]).toMatchObject({
      body: 'ab',
      isComplete: true,
    });
  });

  test('Expect: 100-continue counts for HTTP/1.1, not for HTTP/1.0', () => {
    expect(head(post('Content-Length: 1\r\nExpect: 100-Continue'))).toMatchObject({ expectsContinue: true });
    expect(head('POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n')).toMatchObject({ expectsContinue: false });
  });
});

const ignore = (): void => undefined;

/** The fault of each refused head in some pieces, and what was read of its first line. */
function refusalsIn(pieces: readonly Buffer[], limits = defaultHeadLimits): readonly unknown[] {
  const seen: unknown[] = [];
  const requestFault = (fault: Fault, line?: RequestLine): void => void seen.push([fault, line]);
  const parser = new RequestParser({ requestHead: ignore, body: ignore, requestEnd: ignore, requestFault }, limits);
  for (const piece of pieces) parser.feed(piece, 0);
  return seen;
}

test.each([
  ['GET /a?key=1 HTTP/1.1\r\nHost\r\n', 'GET', '/a?key=1'],
  ['GET /a HTTP/1.1\r\n\r\n', 'GET', '/a'],
  ['\r\nGET /a HTTP/3\r\n', 'GET', '/a'],
  ['GET /a b HTTP/1.1\r\n', 'GET', '/a'],
  ['GET /a\n', 'GET', ''],
  ['G(T /a HTTP/1.1\r\n', '', ''],
  ['\x16\x03\x01', '', ''],
])('of the refused head %j, the method %j and the target %j were read', (text, method, target) => {
  const bytes = Buffer.from(text, 'latin1');
  // A request before it must leave no trace, and neither may the reads.
  for (const first of ['', 'OPTIONS /long/path/before HTTP/1.1\r\nHost: a\r\n\r\n']) {
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const seen = refusalsIn([Buffer.from(first), bytes.subarray(0, cut), bytes.subarray(cut)]);
      expect(seen).toEqual([[expect.any(String), { method, target }]]);
    }
  }
});

test.each([
  [`GET /a HTTP/1.1\r\nX: ${'x'.repeat(200)}`, 'GET', '/a'],
  [`GET /${'a'.repeat(200)}`, 'GET', ''],
  ['G'.repeat(200), '', ''],
])('of a head that is too large, only its own line was read: %j', (text, method, target) => {
  const bytes = Buffer.from(text);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const before = 'GET /before HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n';
    const pieces = [Buffer.from(before), bytes.subarray(0, cut), bytes.subarray(cut)];
    expect(refusalsIn(pieces, { ...defaultHeadLimits, headBytes: 150 })).toEqual([['head_too_large', { method, target }]]);
  }
});
