import { expect, test } from 'vitest';
import { headOf } from '../../../test/support/http1-events.ts';
import { forwardRequestHead } from './forward-request.ts';
import type { RequestHead } from './request-head.ts';
import { givenTraceId } from '../exchange/request-record.ts';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const parent = '00f067aa0ba902b7';

const headWith = (lines: string): RequestHead => headOf(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`);

test('a valid traceparent gives the trace id', () => {
  expect(givenTraceId(headWith(`traceparent: 00-${trace}-${parent}-01\r\n`))).toBe(trace);
  expect(givenTraceId(headWith(`TraceParent: cc-${trace}-${parent}-00-what-comes-later\r\n`))).toBe(trace);
});

test.for([
  '',
  'traceparent: \r\n',
  `traceparent: 00-${trace}-${parent}-01\r\ntraceparent: 00-${trace}-${parent}-01\r\n`,
  `traceparent: ff-${trace}-${parent}-01\r\n`,
  `traceparent: 00-${'0'.repeat(32)}-${parent}-01\r\n`,
  `traceparent: 00-${trace}-${'0'.repeat(16)}-01\r\n`,
  `traceparent: 00-${trace.toUpperCase()}-${parent}-01\r\n`,
  `traceparent: 00-${trace}-${parent}-01-more\r\n`,
  `traceparent: cc-${trace}-${parent}-01-${'x'.repeat(256)}\r\n`,
  `traceparent: 00-${trace.slice(1)}"-${parent}-01\r\n`,
])('anything but exactly one valid traceparent gives no trace id: %j', (lines) => {
  expect(givenTraceId(headWith(lines))).toBeUndefined();
});

test('trace fields reach the replica unchanged, even when they are invalid', () => {
  const lines = ['TraceParent: 00-whatever', `traceparent: 00-${trace}-${parent}-01`, 'tracestate: a=1,b=2', 'baggage: k=v'];
  const forwarded = forwardRequestHead(
    headWith(`${lines.join('\r\n')}\r\n`),
    { address: '10.0.0.9', proto: 'http', isTrusted: false },
    'id-1',
  );
  expect(forwarded.split('\r\n')).toEqual(expect.arrayContaining(lines));
});
