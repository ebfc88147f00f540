import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FieldKind, fieldKind, fieldKindAt, isGuardedName, mayTrail } from './field-kinds.ts';

const special = [
  'Host',
  'content-length',
  'TRANSFER-ENCODING',
  'Connection',
  'Keep-Alive',
  'te',
  'Trailer',
  'Expect',
  'Upgrade',
  'X-Forwarded-For',
];
const names = fc.oneof(
  fc.constantFrom(
    ...special,
    'X-Svc-Reason',
    'x-request-id',
    'Content_Length',
    'x_forwarded_for',
    'Forwarded',
    'Retry-After',
    'content-type',
  ),
  fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}$/),
);

test('a name within a text has the same kind as the name alone', () => {
  fc.assert(fc.property(names, (name) => fieldKindAt(`A: b\r\n${name}: c`, 6, 6 + name.length, name.includes('_')) === fieldKind(name)));
});

test('every special name is recognized in any case', () => {
  const kinds = Object.entries({
    host: FieldKind.host,
    'content-length': FieldKind.contentLength,
    'transfer-encoding': FieldKind.transferEncoding,
    connection: FieldKind.connection,
    'keep-alive': FieldKind.keepAlive,
    'proxy-connection': FieldKind.hopByHop,
    'proxy-authenticate': FieldKind.hopByHop,
    'proxy-authorization': FieldKind.hopByHop,
    'http2-settings': FieldKind.hopByHop,
    upgrade: FieldKind.upgrade,
    te: FieldKind.te,
    trailer: FieldKind.trailer,
    expect: FieldKind.expect,
    forwarded: FieldKind.forwarded,
    'true-client-ip': FieldKind.forwarding,
    'cf-connecting-ip': FieldKind.forwarding,
    'fastly-client-ip': FieldKind.forwarding,
    'fly-client-ip': FieldKind.forwarding,
    'x-client-ip': FieldKind.forwarding,
    'x-cluster-client-ip': FieldKind.forwarding,
    'x-original-url': FieldKind.forwarding,
    'x-rewrite-url': FieldKind.forwarding,
    true_client_ip: FieldKind.forged,
    x_rewrite_url: FieldKind.forged,
    'x-real-ip': FieldKind.forwarding,
    x_real_ip: FieldKind.forged,
    proxy: FieldKind.hopByHop,
    'x-forwarded-for': FieldKind.forwardedFor,
    'x-forwarded-proto': FieldKind.forwardedProto,
    'x-forwarded-host': FieldKind.forwardedHost,
    'x-forwarded-port': FieldKind.forwarding,
    'x-svc-reason': FieldKind.own,
    'x-request-id': FieldKind.requestId,
    'content-type': FieldKind.contentType,
    'retry-after': FieldKind.retryAfter,
    content_length: FieldKind.forged,
    'x-forwarded_for': FieldKind.forged,
    x_request_id: FieldKind.forged,
  });
  for (const [name, kind] of kinds) {
    expect([name, fieldKind(name), fieldKind(name.toUpperCase())]).toEqual([name, kind, kind]);
  }
});

test('any other name is plain', () => {
  const close = ['hosts', 'hos', 'content-lengths', 'xte', 'x-forwarded', 'x-svc', 'x-requestid', 'user_id', 'x_y', 'expecT0', 'upgrad3'];
  for (const name of [...close, 'a'.repeat(60)]) expect([name, fieldKind(name)]).toEqual([name, FieldKind.plain]);
});

test('a permitted trailer is neither framing, routing, credentials nor control', () => {
  for (const name of ['X-Sum', 'Server-Timing', 'grpc-status']) expect(mayTrail(name)).toBe(true);
  for (const name of [
    'Content-Length',
    'Host',
    'authorization',
    'Set-Cookie',
    'Cache-Control',
    'If-Match',
    'TE',
    'Content-Type',
    'x-svc-reason',
  ]) {
    expect(mayTrail(name)).toBe(false);
  }
  expect(isGuardedName('x-forwarded-anything')).toBe(true);
});
