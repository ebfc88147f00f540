import { expect, test } from 'vitest';
import { headOf } from '../../../test/support/http1-events.ts';
import { forwardRequestHead, givenRequestId } from './forward-request.ts';

const forwarded = (bytes: string, isTrusted = false): readonly string[] =>
  forwardRequestHead(headOf(bytes), { address: '10.0.0.9', proto: 'http', isTrusted }, 'id-1').split('\r\n');

const own = ['X-Forwarded-For: 10.0.0.9', 'X-Forwarded-Proto: http', 'X-Forwarded-Host: a', 'X-Request-Id: id-1', '', ''];

test('end-to-end fields keep case, order and duplicates, and Host stays unchanged', () => {
  expect(forwarded('GET /x HTTP/1.1\r\nx-A: 1\r\nhOST: a\r\nX-a:  2 \r\nCookie: c\r\nAuthorization: d\r\n\r\n')).toEqual([
    'GET /x HTTP/1.1',
    'x-A: 1',
    'hOST: a',
    'X-a: 2',
    'Cookie: c',
    'Authorization: d',
    ...own,
  ]);
});

test('hop-by-hop fields and fields that Connection names are dropped', () => {
  const bytes =
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Mine, Upgrade, HTTP2-Settings\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nx-mine: 1\r\n' +
    'Upgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Authorization: y\r\nX-Kept: 1\r\n\r\n';
  expect(forwarded(bytes)).toEqual(['GET / HTTP/1.1', 'Host: a', 'X-Kept: 1', ...own]);
});

test('forwarding fields and x-svc fields of an untrusted client are dropped', () => {
  const bytes =
    'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nx-forwarded-proto: https\r\nForwarded: for=x\r\nX-Svc-Replica: 7\r\n\r\n';
  expect(forwarded(bytes)).toEqual(['GET / HTTP/1.1', 'Host: a', ...own]);
});

test('forwarding fields of a trusted proxy pass, and its address extends the chain', () => {
  const bytes =
    'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nx-forwarded-for: 5.6.7.8, 9.9.9.9\r\nX-Forwarded-Host: public:8\r\n' +
    'x-forwarded-proto: https\r\nX-Forwarded-Port: 8\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Svc-Replica: 7\r\n\r\n';
  expect(forwarded(bytes, true)).toEqual([
    'GET / HTTP/1.1',
    'Host: a',
    'X-Forwarded-Port: 8',
    'X-Real-IP: 1.2.3.4',
    'Forwarded: for=1.2.3.4, for=10.0.0.9;proto=http',
    'X-Forwarded-For: 1.2.3.4, 5.6.7.8, 9.9.9.9, 10.0.0.9',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: public:8',
    'X-Request-Id: id-1',
    '',
    '',
  ]);
});

test('Forwarded of a trusted proxy without X-Forwarded fields gives the chain, scheme and host', () => {
  const bytes =
    'GET / HTTP/1.1\r\nHost: a\r\nForwarded: for="[2001:db8::1]:4";proto=http\r\nforwarded: for=1.2.3.4;proto=https;host=public\r\n\r\n';
  expect(forwarded(bytes, true)).toEqual([
    'GET / HTTP/1.1',
    'Host: a',
    'Forwarded: for="[2001:db8::1]:4";proto=http, for=1.2.3.4;proto=https;host=public, for=10.0.0.9;proto=http',
    'X-Forwarded-For: 2001:db8::1, 1.2.3.4, 10.0.0.9',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: public',
    'X-Request-Id: id-1',
    '',
    '',
  ]);
});

test('a malformed Forwarded is dropped', () => {
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=1.2.3.4;for=2\r\n\r\n', true)).toEqual([
    'GET / HTTP/1.1',
    'Host: a',
    ...own,
  ]);
});

test('names of the client and of another target pass only from a trusted proxy', () => {
  const lines = [
    'True-Client-IP: 1.2.3.4',
    'CF-Connecting-IP: 1.2.3.4',
    'X-Client-IP: 1.2.3.4',
    'X-Original-URL: /admin',
    'X-Rewrite-URL: /admin',
  ];
  const bytes = `GET / HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n\r\n`;
  expect(forwarded(bytes)).toEqual(['GET / HTTP/1.1', 'Host: a', ...own]);
  expect(forwarded(bytes, true)).toEqual(['GET / HTTP/1.1', 'Host: a', ...lines, ...own]);
});

test('the subject of a certificate is passed on, and never one from a request', () => {
  const head = headOf('GET / HTTP/1.1\r\nHost: a\r\nX-Svc-Client-Subject: CN=root\r\n\r\n');
  const lines = (subject?: string): readonly string[] =>
    forwardRequestHead(head, { address: '10.0.0.9', proto: 'https', isTrusted: true, subject }, 'id-1')
      .split('\r\n')
      .filter((line) => /subject/i.test(line));
  expect(lines('CN=alice')).toEqual(['X-Svc-Client-Subject: CN=alice']);
  expect(lines()).toEqual([]);
});

test('a trusted proxy with absent or ambiguous forwarding fields is treated like a client', () => {
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\n\r\n', true)).toEqual(['GET / HTTP/1.1', 'Host: a', ...own]);
  const twice = 'X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: b\r\nX-Forwarded-Host: c\r\n';
  const junk = 'X-Forwarded-For:\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Host: u@b\r\n';
  for (const lines of [twice, junk]) {
    expect(forwarded(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`, true)).toEqual(['GET / HTTP/1.1', 'Host: a', ...own]);
  }
});

test('a body keeps its given length, or goes in new chunks', () => {
  expect(forwarded('DELETE / HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\nTrailer: x\r\n\r\nabc')).toEqual([
    'DELETE / HTTP/1.1',
    'Host: a',
    'content-length: 3',
    ...own,
  ]);
  expect(forwarded('POST / HTTP/1.1\r\nHost: a\r\nTrailer: x\r\ntransfer-encoding: CHUNKED\r\n\r\n')).toEqual([
    'POST / HTTP/1.1',
    'Host: a',
    'Trailer: x',
    'Transfer-Encoding: chunked',
    ...own,
  ]);
});

test('only methods that normally have a body declare its absence', () => {
  expect(forwarded('POST / HTTP/1.1\r\nHost: a\r\n\r\n')).toContain('Content-Length: 0');
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\n\r\n')).not.toContain('Content-Length: 0');
});

test('Expect passes from HTTP/1.1 but not from HTTP/1.0', () => {
  expect(forwarded('PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n')).toContain('Expect: 100-continue');
  expect(forwarded('PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n')).not.toContain('Expect: 100-continue');
});

test('HTTP/1.0 without Host becomes valid HTTP/1.1', () => {
  expect(forwarded('GET http://b:8/x HTTP/1.0\r\n\r\n').slice(0, 2)).toEqual(['GET /x HTTP/1.1', 'Host: b:8']);
  expect(forwarded('GET / HTTP/1.0\r\n\r\n').slice(0, 2)).toEqual(['GET / HTTP/1.1', 'Host: localhost']);
});

test('a client that accepts trailers is announced', () => {
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, Trailers\r\nConnection: TE\r\n\r\n')).toEqual(
    expect.arrayContaining(['TE: trailers', 'Connection: TE']),
  );
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\n\r\n').join()).not.toContain('TE:');
});

const given = (lines: string): string | undefined => givenRequestId(headOf(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`));

test('a request id is used when there is exactly one that can be logged', () => {
  expect(given('X-Request-Id: abc/1\r\n')).toBe('abc/1');
  expect(given('')).toBeUndefined();
  expect(given('X-Request-Id: a\r\nX-Request-Id: b\r\n')).toBeUndefined();
  expect(given(`X-Request-Id: ${'a'.repeat(129)}\r\n`)).toBeUndefined();
  expect(given('X-Request-Id: a b\r\n')).toBeUndefined();
  expect(given('X-Request-Id:\r\n')).toBeUndefined();
  expect(forwarded('GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: other\r\n\r\n').filter((line) => line.startsWith('X-Request-Id'))).toEqual([
    'X-Request-Id: id-1',
  ]);
});

test('lines with odd white space or between dropped ones become canonical', () => {
  const bytes = 'GET / HTTP/1.1\r\nA: 1\r\nB:2\r\nC:  3\r\nTE: x\r\nD: 4 \r\nE: 5\r\nF: 6\r\nUpgrade: y\r\nHost: a\r\nG:\r\nH_i: 7\r\n\r\n';
  expect(forwarded(bytes)).toEqual(['GET / HTTP/1.1', 'A: 1', 'B: 2', 'C: 3', 'D: 4', 'E: 5', 'F: 6', 'Host: a', 'G: ', 'H_i: 7', ...own]);
});
