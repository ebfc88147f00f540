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

test('the quick look at a name in a text says the same as the close one', () => {
  fc.assert(fc.property(names, (name) => fieldKindAt(`A: b\r\n${name}: c`, 6, 6 + name.length, name.includes('_')) === fieldKind(name)));
});

test('the same name is of the same kind however often and in whatever case it comes', () => {
  for (const name of special) {
    expect(fieldKind(name)).not.toBe(FieldKind.plain);
    expect([fieldKind(name.toLowerCase()), fieldKind(name.toUpperCase())]).toEqual([fieldKind(name), fieldKind(name)]);
  }
});

test('invented names do not fill memory, and do not displace known ones', () => {
  for (let index = 0; index < 2_000; index += 1) expect(fieldKind(`x-invented-${index}`)).toBe(FieldKind.plain);
  expect(fieldKind('CoNtEnT-lEnGtH')).toBe(FieldKind.contentLength);
});

test('what may come after a body is neither framing, routing, credentials nor control', () => {
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
