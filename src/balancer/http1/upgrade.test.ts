import { describe, expect, test } from 'vitest';
import { readRequests } from '../../../test/support/http1-events.ts';
import { forwardRequestHead } from './forward-request.ts';
import { forwardResponseHead, responseFraming } from './forward-response.ts';
import { defaultHeadLimits } from './limits.ts';
import type { RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';
import { RequestParser } from './request-parser.ts';
import { ResponseParser } from './response-parser.ts';

const client = { address: '10.0.0.1', proto: 'http', isTrusted: false } as const;
const asking = (fields: string, line = 'GET /chat HTTP/1.1') => `${line}\r\nHost: h\r\n${fields}\r\n\r\n`;
const webSocket = asking('Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k');

function headOf(text: string): RequestHead {
  const head = readRequests(text).messages[0]?.head;
  if (head === undefined) throw new Error('no head');
  return head;
}

test('a WebSocket request passes as one', () => {
  const head = headOf(webSocket);
  expect(head.isUpgrade).toBe(true);
  expect(forwardRequestHead(head, client, 'id')).toContain('Sec-WebSocket-Key: k\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n');
});

describe('becomes a plain request', () => {
  test.for([
    ['another protocol', asking('Connection: Upgrade\r\nUpgrade: h2c')],
    ['two protocols', asking('Connection: Upgrade\r\nUpgrade: websocket, h2c')],
    ['two fields', asking('Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket')],
    ['no Connection: Upgrade', asking('Upgrade: websocket')],
    ['another method', asking('Connection: Upgrade\r\nUpgrade: websocket', 'POST /chat HTTP/1.1')],
    ['HTTP/1.0', asking('Connection: Upgrade\r\nUpgrade: websocket', 'GET /chat HTTP/1.0')],
    ['a body', `${asking('Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1')}x`],
  ] as const)('%s', ([, text]) => {
    const head = headOf(text);
    expect(head.isUpgrade).toBe(false);
    expect(forwardRequestHead(head, client, 'id')).not.toMatch(/upgrade/i);
  });
});

/** The parse of an answer to a request that asked, or did not ask, for another protocol. */
function answer(text: string, isUpgrade: boolean) {
  const seen: { head: ResponseHead | undefined; body: string; fault: string | undefined } = { head: undefined, body: '', fault: undefined };
  const parser = new ResponseParser(defaultHeadLimits);
  parser.begin('GET', isUpgrade, {
    responseInterim: () => undefined,
    responseHead: (head) => {
      seen.head = head;
    },
    body: (bytes, from, to) => {
      seen.body += bytes.toString('latin1', from, to);
    },
    responseEnd: () => undefined,
    responseFault: (fault) => {
      seen.fault = fault;
    },
  });
  parser.feed(Buffer.from(text), 0);
  return { ...seen, isTunnel: parser.isTunnel };
}

const switching = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nframes';

test('after a requested 101 all bytes pass unchanged', () => {
  const { head, body, isTunnel } = answer(switching, true);
  expect({ status: head?.status, body, isTunnel }).toEqual({ status: 101, body: 'frames', isTunnel: true });
  if (head === undefined) throw new Error('no head');
  const framing = responseFraming(head, headOf(webSocket));
  const text = forwardResponseHead(head, headOf(webSocket), framing, { requestId: 'id', isPersistent: false, ownLines: '' });
  expect(text).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n/);
  expect(text).not.toMatch(/close|chunked|content-length/i);
});

test.for([
  ['was not requested', switching, false],
  ['switches to something else', switching.replace('Upgrade: websocket', 'Upgrade: other'), true],
  ['does not say to what', switching.replace('Upgrade: websocket\r\n', ''), true],
] as const)('a 101 that %s is refused', ([, text, isUpgrade]) => {
  expect(answer(text, isUpgrade).fault).toBe('unasked_upgrade');
});

test('a refused upgrade is a plain response', () => {
  const { head, isTunnel } = answer('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n', true);
  expect({ status: head?.status, isTunnel, isPersistent: head?.isPersistent }).toEqual({
    status: 403,
    isTunnel: false,
    isPersistent: true,
  });
});

test('an upgraded connection is read as plain bytes', () => {
  let body = '';
  const parser = new RequestParser(
    {
      requestHead: () => undefined,
      body: (bytes, from, to) => {
        body += bytes.toString('latin1', from, to);
      },
      requestEnd: () => undefined,
      requestFault: () => undefined,
    },
    defaultHeadLimits,
  );
  parser.feed(Buffer.from(webSocket), 0);
  parser.becomeRaw();
  parser.feed(Buffer.from('GET / HTTP/1.1\r\n\r\n'), 0);
  expect(body).toBe('GET / HTTP/1.1\r\n\r\n');
});
