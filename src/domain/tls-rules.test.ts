import { getCiphers } from 'node:tls';
import { expect, test } from 'vitest';
import { suitesForKey, tlsRules, tlsSuites, versionWithoutSuite } from './tls-rules.ts';

test('a file without settings gets TLS 1.2 and 1.3 with every suite', () => {
  expect(tlsRules({})).toEqual({ minVersion: '1.2', ciphers: tlsSuites });
});

test.each([
  ['1.2', ['TLS_AES_128_GCM_SHA256'], '1.2'],
  ['1.2', ['ECDHE-RSA-AES128-GCM-SHA256'], '1.3'],
  ['1.2', ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'], undefined],
  ['1.3', ['TLS_AES_128_GCM_SHA256'], undefined],
  ['1.3', ['ECDHE-RSA-AES128-GCM-SHA256'], '1.3'],
] as const)('from TLS %s on, the suites %j leave out version %s', (minVersion, ciphers, missing) => {
  expect(versionWithoutSuite({ minVersion, ciphers })).toBe(missing);
});

test.each([
  ['rsa', ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256']],
  ['rsa-pss', ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256']],
  ['ec', ['TLS_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256']],
  ['ed25519', ['TLS_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256']],
])('a key of type %s works with %j', (keyType, usable) => {
  const ciphers = ['TLS_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'];
  expect(suitesForKey(ciphers, keyType)).toEqual(usable);
});

test('OpenSSL knows every suite by this name', () => {
  expect(getCiphers()).toEqual(expect.arrayContaining(tlsSuites.map((suite) => suite.toLowerCase())));
});
