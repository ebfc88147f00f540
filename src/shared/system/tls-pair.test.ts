import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { selfSigned } from '../../../test/support/certificate.ts';
import { judgeClientCa, judgeTlsPair } from './tls-pair.ts';

const now = Date.UTC(2026, 5, 15);
const dayMs = 86_400_000;
const sound = selfSigned();
const other = selfSigned();
const rsa = selfSigned({ rsaBits: 2_048 });

test("a matching key and certificate are accepted, also with authorities' certificates after it", () => {
  expect(judgeTlsPair(sound.key, sound.cert, now)).toEqual({ faults: [], notInForce: undefined, warning: undefined, keyType: 'ec' });
  expect(judgeTlsPair(sound.key, `issued to us\n${sound.cert}${other.cert}`, now).faults).toEqual([]);
});

test.each([
  ['two files that are neither', 'hello', 'world', ['keyfile is not a private key in PEM', 'certfile is not a certificate in PEM']],
  ['the files swapped', sound.cert, sound.key, ['keyfile is not a private key in PEM', 'certfile is not a certificate in PEM']],
  ['a key that was cut off', sound.key.slice(0, 80), sound.cert, ['keyfile is a damaged private key']],
  ['a damaged certificate', sound.key, sound.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'), ['certfile has a damaged certificate']],
  ['an empty key and an empty certificate', '', '\n', ['keyfile is empty', 'certfile is empty']],
  ['a certificate that was cut off', sound.key, sound.cert.slice(0, 100), ['certfile ends in the middle of a certificate']],
  [
    'a second certificate that was cut off',
    sound.key,
    sound.cert + other.cert.slice(0, 100),
    ['certfile ends in the middle of a certificate'],
  ],
  [
    'an RSA certificate of an EC key',
    sound.key,
    rsa.cert,
    ['certfile is not the certificate of the key in keyfile: it certifies a key of type rsa, and that key is of type ec'],
  ],
  [
    'an EC certificate of an RSA key',
    rsa.key,
    sound.cert,
    ['certfile is not the certificate of the key in keyfile: it certifies a key of type ec, and that key is of type rsa'],
  ],
  ['a certificate of another key', sound.key, other.cert, ['certfile is not the certificate of the key in keyfile']],
  [
    'the certificate of another key under an older label, before that of the key',
    sound.key,
    other.cert.replaceAll(' CERTIFICATE', ' X509 CERTIFICATE') + sound.cert,
    ['certfile begins with the certificate of an authority'],
  ],
  ['a chain in the wrong order', sound.key, other.cert + sound.cert, ['certfile begins with the certificate of an authority']],
])('%s', (_about, key, cert, faults) => {
  expect(judgeTlsPair(key, cert, now).faults.map(({ field, reason }) => `${field} ${reason}`)).toEqual(faults);
});

const root = { subject: 'root', ...selfSigned({ subject: 'root', isAuthority: true }) };
const intermediate = { subject: 'intermediate', ...selfSigned({ subject: 'intermediate', isAuthority: true, issuer: root }) };

test.each([
  ["a client's own certificate, which may sign no other", selfSigned({ isForHandshakes: true }).cert],
  ['an intermediate certificate before its root', intermediate.cert + root.cert],
  ['another root before an intermediate certificate', sound.cert + intermediate.cert],
])('client_ca with %s is accepted', (_what, text) => {
  expect(judgeClientCa(text)).toBeUndefined();
});

test('client_ca with only an intermediate certificate names the missing issuer', () => {
  expect(judgeClientCa(intermediate.cert)).toEqual({
    field: 'client_ca',
    reason: 'lacks the certificate of the authority that issued its own (CN=root), so no client could connect',
    hint: 'Add the certificate of the root authority to the file; then clients of each authority below it may connect.',
  });
});

test('a key with a passphrase is reported with the command that removes it', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const locked = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hunter2' }).toString();
  const [fault] = judgeTlsPair(locked, sound.cert, now).faults;
  expect(fault).toEqual({
    field: 'keyfile',
    reason: 'is locked with a passphrase',
    hint: 'Write it without one: openssl pkey -in KEY -out NEW_KEY',
  });
});

test('a weak key is rejected before any handshake', () => {
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
  expect([verdict.faults, verdict.notInForce?.reason, verdict.warning]).toEqual([[], reason, warning]);
});

test("messages contain nothing of the files' content", () => {
  const body = sound.key.split('\n')[1] ?? '';
  expect(JSON.stringify(judgeTlsPair(sound.key.slice(0, 90), 'x', now))).not.toContain(body.slice(0, 20));
});
