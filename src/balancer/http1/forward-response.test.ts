import { expect, test } from 'vitest';
import { headOf, readResponse } from '../../../test/support/http1-events.ts';
import { forwardInterimHead, forwardResponseHead, isEventStream, lastChunk, responseFraming } from './forward-response.ts';
import { writeBalancerResponse } from './balancer-response.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

const requestOf = (method: string, version: '1.0' | '1.1'): RequestHead =>
  headOf(`${method} / HTTP/${version}\r\nHost: a\r\nConnection: keep-alive\r\n\r\n`);

function responseOf(bytes: string, method = 'GET'): ResponseHead {
  const head = readResponse(bytes, [], method, false).messages[0]?.head;
  if (head === undefined) throw new Error('refused');
  return head;
}

function forwarded(bytes: string, method = 'GET', version: '1.0' | '1.1' = '1.1', isPersistent = true): readonly string[] {
  const [head, request] = [responseOf(bytes, method), requestOf(method, version)];
  const additions = { requestId: 'id-1', isPersistent, ownLines: '' };
  return forwardResponseHead(head, request, responseFraming(head, request), additions).split('\r\n');
}

const end = ['X-Request-Id: id-1', '', ''];

test('fields keep case, order and duplicates; hop-by-hop, nominated and own names are dropped', () => {
  const bytes =
    'HTTP/1.1 404 Not here\r\nset-cookie: a\r\nSet-Cookie: b\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Svc-Reason: fake\r\n' +
    'Content-Length: 3\r\nContent-Type: text/plain\r\nRetry-After: 3\r\n\r\n';
  expect(forwarded(bytes)).toEqual([
    'HTTP/1.1 404 Not here',
    'set-cookie: a',
    'Set-Cookie: b',
    'Content-Length: 3',
    'Content-Type: text/plain',
    'Retry-After: 3',
    ...end,
  ]);
});

test('a body without a length is chunked for HTTP/1.1, and closes for HTTP/1.0', () => {
  const untilClose = 'HTTP/1.0 200 OK\r\nA: b\r\n\r\n';
  expect(forwarded(untilClose)).toEqual(['HTTP/1.1 200 OK', 'A: b', 'Transfer-Encoding: chunked', ...end]);
  expect(responseFraming(responseOf(untilClose), requestOf('GET', '1.0'))).toBe('close');
  expect(forwarded(untilClose, 'GET', '1.0', false)).toEqual(['HTTP/1.1 200 OK', 'A: b', 'Connection: close', ...end]);
});

test('chunks and trailers go only to HTTP/1.1', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\ntransfer-encoding: chunked\r\n\r\n';
  expect(forwarded(chunked)).toEqual(['HTTP/1.1 200 OK', 'Trailer: X-Sum', 'Transfer-Encoding: chunked', ...end]);
  expect(forwarded(chunked, 'GET', '1.0', false)).toEqual(['HTTP/1.1 200 OK', 'Connection: close', ...end]);
  expect(lastChunk(['X-Sum', '1'])).toBe('0\r\nX-Sum: 1\r\n\r\n');
});

test('HEAD and 304 declare the framing of the absent body; 204 does not', () => {
  expect(forwarded('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 'HEAD')).toEqual(['HTTP/1.1 200 OK', 'Content-Length: 5', ...end]);
  expect(forwarded('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'HEAD')).toContain('Transfer-Encoding: chunked');
  expect(forwarded('HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n')).toContain('Content-Length: 5');
  expect(forwarded('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n')).toEqual(['HTTP/1.1 204 No Content', ...end]);
});

test('an empty body keeps its length of 0', () => {
  expect(forwarded('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')).toContain('Content-Length: 0');
});

test('the Connection field is sent where it differs from the default', () => {
  const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  expect(forwarded(bytes, 'GET', '1.1', false)).toContain('Connection: close');
  expect(forwarded(bytes, 'GET', '1.0', true)).toContain('Connection: keep-alive');
});

test('the request id of the replica overrides the balancer id', () => {
  const lines = forwarded('HTTP/1.1 200 OK\r\nx-request-id: theirs\r\nContent-Length: 0\r\n\r\n');
  expect(lines.filter((line) => line.toLowerCase().startsWith('x-request-id'))).toEqual(['x-request-id: theirs']);
});

test('interim responses pass with their fields and without framing', () => {
  const head = readResponse('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 3\r\n\r\n', [], 'GET', false).messages[0]
    ?.interim[0];
  expect(head === undefined ? '' : forwardInterimHead(head)).toBe('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
});

test('the content type identifies event streams', () => {
  expect(isEventStream(responseOf('HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n'))).toBe(true);
  expect(isEventStream(responseOf('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n'))).toBe(false);
  expect(isEventStream(responseOf('HTTP/1.1 200 OK\r\n\r\n'))).toBe(false);
});

test('own answers are JSON with a reason, and without a body for HEAD', () => {
  const response = { status: 503, code: 'no_ready_replica', message: 'None.', retryAfter: 5 };
  const text = writeBalancerResponse(response, requestOf('GET', '1.1'), 'id-1', true);
  expect(text.split('\r\n')).toEqual([
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: application/json',
    'Content-Length: 78',
    'Retry-After: 5',
    'X-Svc-Reason: no_ready_replica',
    'X-Request-Id: id-1',
    '',
    '{"error":{"message":"None.","type":"server_error","code":"no_ready_replica"}}\n',
  ]);
  expect(writeBalancerResponse(response, requestOf('HEAD', '1.1'), 'id-1', true)).toMatch(/\r\n\r\n$/);
  const refused = writeBalancerResponse({ status: 405, code: 'method_not_allowed', message: 'No.' }, undefined, 'id-1', false);
  expect(refused).toContain('\r\nAllow: GET, ');
  expect(refused).toContain('\r\nConnection: close\r\n');
  expect(refused).toContain('"type":"invalid_request_error"');
});
