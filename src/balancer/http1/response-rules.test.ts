import { describe, expect, test } from 'vitest';
import { readResponse } from '../../../test/support/http1-events.ts';
import { chunkedLength, untilClose } from './body-length.ts';
import type { Fault } from './faults.ts';
import { keepAliveSeconds, retryAfterSeconds, type ResponseHead } from './response-head.ts';

const ok = (lines: string, body = ''): string => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n${body}`;

type Rule = readonly [rule: string, bytes: string, fault: Fault];

const refused: readonly Rule[] = [
  ['both lengths', ok('Content-Length: 1\r\nTransfer-Encoding: chunked', '0\r\n\r\n'), 'both_lengths'],
  ['two lengths', ok('Content-Length: 1\r\nContent-Length: 2', 'ab'), 'bad_content_length'],
  ['two equal lengths', ok('Content-Length: 1\r\nContent-Length: 1', 'a'), 'bad_content_length'],
  ['a length that is no number', ok('Content-Length: 1a', 'a'), 'bad_content_length'],
  ['a length in hexadecimal', ok('Content-Length: 0x1', 'a'), 'bad_content_length'],
  ['an empty length', ok('Content-Length:', 'a'), 'bad_content_length'],
  ['lengths in a list', ok('Content-Length: 1, 1', 'a'), 'bad_content_length'],
  [
    'both lengths where there is no body',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'both_lengths',
  ],
  ['a bad length in an interim response', 'HTTP/1.1 103 Early Hints\r\nContent-Length: x\r\n\r\n', 'bad_content_length'],
  ['another transfer coding', ok('Transfer-Encoding: gzip'), 'unknown_transfer_coding'],
  ['chunked twice', ok('Transfer-Encoding: chunked, chunked'), 'bad_transfer_encoding'],
  ['chunked on HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'bad_transfer_encoding'],
  ['a tab after chunked', ok('Transfer-Encoding: chunked\t', '0\r\n\r\n'), 'bad_transfer_encoding'],
  ['a bad chunk size', ok('Transfer-Encoding: chunked', 'zz\r\n'), 'bad_chunk'],
  ['a chunk longer than its size', ok('Transfer-Encoding: chunked', '1\r\nab\r\n'), 'bad_chunk'],
  ['a chunk size of 17 digits', ok('Transfer-Encoding: chunked', '00000000000000001\r\na\r\n'), 'bad_chunk'],
  ['chunk extensions over 256 bytes', ok('Transfer-Encoding: chunked', `1;${'a'.repeat(257)}\r\na\r\n`), 'bad_chunk'],
  ['a bare LF after a chunk', ok('Transfer-Encoding: chunked', '1\r\na\n0\r\n\r\n'), 'bad_chunk'],
  ['folding in the trailers', ok('Transfer-Encoding: chunked', '0\r\nA: b\r\n c\r\n\r\n'), 'folded_field'],
  ['a bare CR in a value', ok('A: b\rc'), 'bad_line_end'],
  ['an empty field name', ok(': b'), 'bad_field_name'],
  ['0x7f in a value', ok('A: \u007f'), 'bad_field_value'],
  ['Connection that nominates Set-Cookie', ok('Connection: Set-Cookie'), 'bad_connection'],
  ['a status line over the limit', `HTTP/1.1 200 ${'a'.repeat(8_200)}\r\n\r\n`, 'line_too_long'],
  ['trailers over the limit', ok('Transfer-Encoding: chunked', `0\r\nA: ${'b'.repeat(33_000)}\r\n\r\n`), 'head_too_large'],
  ['folding', ok('A: b\r\n c'), 'folded_field'],
  ['a NUL in a value', ok('A: \u0000'), 'bad_field_value'],
  ['a space before the colon', ok('A : b'), 'bad_field_name'],
  ['a bare LF', 'HTTP/1.1 200 OK\nA: b\r\n\r\n', 'bad_line_end'],
  ['an imitated framing field', ok('Content_Length: 1'), 'forged_field'],
  ['a head over the limit', ok(`A: ${'b'.repeat(33_000)}`), 'head_too_large'],
  ['too many fields', ok(Array.from({ length: 101 }, (_, index) => `A${index}: b`).join('\r\n')), 'too_many_fields'],
  ['an unrequested 101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n', 'unasked_upgrade'],
  ['more than 8 interim responses', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(9), 'too_many_interim'],
  ['another protocol', 'SSH-2.0-OpenSSH\r\n', 'bad_version'],
  ['HTTP/2', 'HTTP/2 200\r\n\r\n', 'bad_version'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', 'bad_status_line'],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n', 'bad_status_line'],
  ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n', 'bad_status_line'],
  ['a status with letters', 'HTTP/1.1 2x0 OK\r\n\r\n', 'bad_status_line'],
  ['a control byte in the reason', 'HTTP/1.1 200 O\u0001K\r\n\r\n', 'bad_status_line'],
];

describe('a response is refused', () => {
  test.each(refused)('%s', (_, bytes, fault) => {
    expect(readResponse(bytes).messages[0]?.fault).toBe(fault);
    expect(
      readResponse(
        bytes,
        Array.from(bytes, (__, index) => index),
      ).messages[0]?.fault,
    ).toBe(fault);
  });
});

const cutShort = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc',
  ok('Transfer-Encoding: chunked', '3\r\nabc\r\n'),
  'HTTP/1.1 200 O',
  '',
];

test.each(cutShort)('a response that is cut short is not complete: %j', (bytes) => {
  expect(readResponse(bytes).messages[0]).toMatchObject({ isComplete: false, fault: undefined });
});

const isPersistent = (bytes: string, method = 'GET'): boolean | undefined =>
  readResponse(bytes, [], method, false).messages[0]?.head?.isPersistent;

function headWith(line: string): ResponseHead {
  const found = readResponse(ok(`Content-Length: 0\r\n${line}`)).messages[0]?.head;
  if (found === undefined) throw new Error('no head');
  return found;
}

describe('a response is accepted', () => {
  test('an empty or missing reason is allowed', () => {
    expect(readResponse('HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n').messages[0]?.head).toMatchObject({ status: 200, reason: '' });
    expect(readResponse('HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n').messages[0]?.head).toMatchObject({ status: 200, reason: '' });
  });

  test('8 interim responses are allowed', () => {
    const [message] = readResponse(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(8)}${ok('Content-Length: 0')}`).messages;
    expect([message?.interim.length, message?.isComplete]).toEqual([8, true]);
  });

  test('interim responses come before the final one', () => {
    const bytes = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok('Content-Length: 1', 'a')}`;
    const [message] = readResponse(bytes).messages;
    expect(message?.interim.map(({ status }) => status)).toEqual([100, 103]);
    expect(message).toMatchObject({ body: 'a', isComplete: true });
  });

  test('HEAD, 204 and 304 have no body, whatever their fields declare', () => {
    for (const [bytes, method] of [
      [ok('Content-Length: 5'), 'HEAD'],
      [ok('Transfer-Encoding: chunked'), 'HEAD'],
      ['HTTP/1.1 204 No Content\r\n\r\n', 'GET'],
      ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', 'GET'],
    ] as const) {
      expect(readResponse(bytes, [], method, false)).toMatchObject({ messages: [{ body: '', isComplete: true }], excess: 0 });
    }
  });

  test('bytes after the response are excess, not body', () => {
    expect(readResponse(ok('Content-Length: 1', 'aHTTP/1.1 200 OK\r\n\r\n')).excess).toBe(19);
    expect(readResponse('HTTP/1.1 204 No Content\r\n\r\nabc').excess).toBe(3);
    expect(readResponse(ok('Content-Length: 3', 'abc'), [], 'HEAD').excess).toBe(3);
    expect(readResponse(ok('Transfer-Encoding: chunked', '0\r\n\r\nx')).excess).toBe(1);
  });

  test('HTTP/1.0 without a length ends with the connection and is not persistent', () => {
    const [message] = readResponse('HTTP/1.0 200 OK\r\n\r\nabc').messages;
    expect(message).toMatchObject({ body: 'abc', isComplete: true, head: { bodyLength: untilClose, isPersistent: false } });
  });

  test('persistence depends on version, framing and Connection', () => {
    expect(isPersistent(ok('Content-Length: 0'))).toBe(true);
    expect(isPersistent(ok('Content-Length: 0\r\nConnection: close'))).toBe(false);
    expect(isPersistent('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n')).toBe(false);
    expect(isPersistent('HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n')).toBe(true);
    expect(isPersistent(ok('A: b'))).toBe(false);
  });

  test.each([
    ['HEAD', '200 OK', 'Content-Length: 5', false],
    ['HEAD', '200 OK', 'Transfer-Encoding: chunked', false],
    ['HEAD', '200 OK', 'A: b', false],
    ['HEAD', '200 OK', 'Content-Length: 0', true],
    ['HEAD', '304 Not Modified', 'A: b', false],
    ['GET', '304 Not Modified', 'Content-Length: 5', false],
    ['GET', '304 Not Modified', 'Transfer-Encoding: chunked', false],
    ['GET', '304 Not Modified', 'Content-Length: 0', true],
    ['GET', '304 Not Modified', 'A: b', false],
    ['GET', '204 No Content', 'Content-Length: 5', false],
    ['GET', '204 No Content', 'Transfer-Encoding: chunked', false],
    ['GET', '204 No Content', 'Content-Length: 0', true],
    ['GET', '204 No Content', 'A: b', false],
    ['GET', '200 OK', 'Content-Length: 5', true],
    ['GET', '200 OK', 'Transfer-Encoding: chunked', true],
  ])('isPersistent after a reply to %s with %s and %s: %s', (method, status, line, isKept) => {
    expect(isPersistent(`HTTP/1.1 ${status}\r\n${line}\r\n\r\n`, method)).toBe(isKept);
  });

  test('valid Keep-Alive and Retry-After times are read, and invalid ones ignored', () => {
    expect(keepAliveSeconds(headWith('Keep-Alive: timeout=5, max=100'))).toBe(5);
    expect(keepAliveSeconds(headWith('Keep-Alive: max=100'))).toBeUndefined();
    expect(keepAliveSeconds(headWith('A: b'))).toBeUndefined();
    expect(retryAfterSeconds(headWith('Retry-After: 30'))).toBe(30);
    expect(retryAfterSeconds(headWith('Retry-After: Fri, 31 Dec 1999 23:59:59 GMT'))).toBeUndefined();
    expect(retryAfterSeconds(headWith('Retry-After: -1'))).toBeUndefined();
  });

  test('a chunked body has chunked length and trailers', () => {
    const [message] = readResponse(ok('Transfer-Encoding: CHUNKED', '1\r\na\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a\r\n\r\n')).messages;
    expect(message).toMatchObject({ head: { bodyLength: chunkedLength }, body: 'a', trailers: ['X-Sum', '1'], isComplete: true });
  });
});
