import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { selfSigned } from '../../test/support/certificate.ts';
import { judgeTlsPair } from './tls-pair.ts';

const now = Date.UTC(2026, 5, 15);
const dayMs = 86_400_000;
const sound = selfSigned();
const other = selfSigned();

test('a key and its certificate serve, also with the certificates of authorities after it', () => {
  expect(judgeTlsPair(sound.key, sound.cert, now)).toEqual({ faults: [], warning: undefined });
  expect(judgeTlsPair(sound.key, `issued to us\n${sound.cert}${other.cert}`, now).faults).toEqual([]);
});

test.each([
  ['two files that are neither', 'hello', 'world', ['keyfile is not a private key in PEM', 'certfile is not a certificate in PEM']],
  ['the files swapped', sound.cert, sound.key, ['keyfile is not a private key in PEM', 'certfile is not a certificate in PEM']],
  ['a key that was cut off', sound.key.slice(0, 80), sound.cert, ['keyfile is a damaged private key']],
  ['a damaged certificate', sound.key, sound.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'), ['certfile has a damaged certificate']],
  ['a certificate of another key', sound.key, other.cert, ['certfile is not the certificate of the key in keyfile']],
  ['a chain in the wrong order', sound.key, other.cert + sound.cert, ['certfile begins with the certificate of an authority']],
])('%s', (_about, key, cert, faults) => {
  expect(judgeTlsPair(key, cert, now).faults.map(({ field, reason }) => `${field} ${reason}`)).toEqual(faults);
});

test('a key with a passphrase is told, with how to take it away', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const locked = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hunter2' }).toString();
  const [fault] = judgeTlsPair(locked, sound.cert, now).faults;
  expect(fault).toEqual({
    field: 'keyfile',
    reason: 'is locked with a passphrase',
    hint: 'Write it without one: openssl pkey -in KEY -out NEW_KEY',
  });
});

test('a weak key is refused here rather than at each handshake', () => {
  const { key, cert } = selfSigned({ rsaBits: 512 });
  expect(judgeTlsPair(key, cert, now).faults).toMatchObject([{ field: 'certfile', reason: expect.stringContaining('key too small') }]);
});

test.each([
  ['ended yesterday', { notAfter: now - dayMs }, 'is good no longer: it ended on 2026-06-14T00:00:00.000Z', undefined],
  ['begins tomorrow', { notBefore: now + dayMs }, 'is not good before 2026-06-16T00:00:00.000Z', undefined],
  ['ends in 13 days', { notAfter: now + 13 * dayMs }, undefined, 'The certificate of the endpoint ends on 2026-06-28T00:00:00.000Z.'],
  ['ends in 15 days', { notAfter: now + 15 * dayMs }, undefined, undefined],
])('a certificate that %s', (_about, times, reason, warning) => {
  const { key, cert } = selfSigned(times);
  const verdict = judgeTlsPair(key, cert, now);
  expect([verdict.faults[0]?.reason, verdict.warning]).toEqual([reason, warning]);
});

test('nothing of the files is in what is said of them', () => {
  const body = sound.key.split('\n')[1] ?? '';
  expect(JSON.stringify(judgeTlsPair(sound.key.slice(0, 90), 'x', now))).not.toContain(body.slice(0, 20));
});
