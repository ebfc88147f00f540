import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { selfSigned } from '../../test/support/certificate.ts';
import { problemLine } from '../../test/support/task-text.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { SvcError } from '../shared/errors.ts';
import { checkTlsFiles } from './check-tls-files.ts';
import { parseTask } from './parse-task.ts';

const text = 'service:\n  ports: 80\n  tls:\n    keyfile: key.pem\n    certfile: cert.pem\nrun: serve\n';
const now = Date.UTC(2026, 0, 1);

/** The result of the check for a service whose two files have these texts. */
async function check(home: string, key: string, cert: string): Promise<string | undefined> {
  const source = { source: text, file: join(home, 'service.yaml'), envs: {}, secrets: {} };
  writeFileSync(join(home, 'key.pem'), key);
  writeFileSync(join(home, 'cert.pem'), cert);
  return checkTlsFiles(parseTask(source), source, now);
}

test('valid files pass, and a certificate that expires soon gives a warning', async () => {
  await withTempHome(async (home) => {
    const long = selfSigned();
    expect(await check(home, long.key, long.cert)).toBeUndefined();
    const short = selfSigned({ notAfter: now + 1_000 });
    expect(await check(home, short.key, short.cert)).toBe('The certificate of the endpoint ends on 2026-01-01T00:00:01.000Z.');
  });
});

test('files that do not match are rejected with their positions', async () => {
  await withTempHome(async (home) => {
    const refused = check(home, 'no key', selfSigned().cert);
    await expect(refused).rejects.toMatchObject({
      code: 'SVC_BAD_CERTIFICATE',
      message: `The endpoint cannot be served over TLS with the files that ${home}/service.yaml names.`,
    });
    const error: unknown = await refused.catch((caught: unknown) => caught);
    expect(error instanceof SvcError && error.problems.map(problemLine)).toEqual([
      '4:14 service.tls.keyfile: is not a private key in PEM (A private key begins with: -----BEGIN PRIVATE KEY-----)',
    ]);
  });
});

test('a file of authorities needs a certificate, and its position is named', async () => {
  await withTempHome(async (home) => {
    const { key, cert } = selfSigned();
    const withCa = text.replace('    certfile', '    client_ca: ca.pem\n    certfile');
    const source = { source: withCa, file: join(home, 'service.yaml'), envs: {}, secrets: {} };
    await check(home, key, cert);
    writeFileSync(join(home, 'ca.pem'), cert);
    expect(await checkTlsFiles(parseTask(source), source, now)).toBeUndefined();
    writeFileSync(join(home, 'ca.pem'), key);
    const error: unknown = await checkTlsFiles(parseTask(source), source, now).catch((caught: unknown) => caught);
    expect(error instanceof SvcError && error.problems.map(problemLine)).toEqual([
      '5:16 service.tls.client_ca: is not a certificate in PEM (A certificate begins with: -----BEGIN CERTIFICATE-----)',
    ]);
  });
});

test.each([
  ['rsa', { rsaBits: 2_048 }, 'ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['ec', {}, 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
])('suites of TLS 1.2 for another type than the %s key are refused', async (type, options, suite, remedy) => {
  await withTempHome(async (home) => {
    const { key, cert } = selfSigned(options);
    await check(home, key, cert);
    const problems = async (more: string): Promise<unknown> => {
      const source = { source: text.replace('run:', `${more}run:`), file: join(home, 'service.yaml'), envs: {}, secrets: {} };
      const error: unknown = await checkTlsFiles(parseTask(source), source, now).catch((caught: unknown) => caught);
      return error instanceof SvcError ? error.problems.map(problemLine) : error;
    };
    const ciphers = `    ciphers: [TLS_AES_128_GCM_SHA256, ${suite}]\n`;
    expect(await problems(ciphers)).toEqual([
      `6:14 service.tls.ciphers: has no suite of TLS 1.2 for the key in keyfile, which is of type ${type} (Add for instance ${remedy}, or set min_version: '1.3'.)`,
    ]);
    expect(await problems(`${ciphers}    min_version: '1.3'\n`)).toBeUndefined();
    expect(await problems(`    ciphers: [TLS_AES_128_GCM_SHA256, ${suite}, ${remedy}]\n`)).toBeUndefined();
  });
});

test('a file removed meanwhile has its own code; without TLS no file is needed', async () => {
  await withTempHome(async (home) => {
    const { key, cert } = selfSigned();
    await check(home, key, cert);
    rmSync(join(home, 'key.pem'));
    const source = { source: text, file: join(home, 'service.yaml'), envs: {}, secrets: {} };
    await expect(checkTlsFiles(parseTask(source), source, now)).rejects.toMatchObject({ code: 'SVC_FILE_UNREADABLE' });
    const plain = { ...source, source: 'service: {ports: 80}\nrun: serve\n' };
    expect(await checkTlsFiles(parseTask(plain), plain, now)).toBeUndefined();
  });
});

// Root may read everything.
test.skipIf(process.getuid?.() === 0)('an unreadable key has its own code', async () => {
  await withTempHome(async (home) => {
    const { key, cert } = selfSigned();
    await check(home, key, cert);
    chmodSync(join(home, 'key.pem'), 0o000);
    const source = { source: text, file: join(home, 'service.yaml'), envs: {}, secrets: {} };
    await expect(checkTlsFiles(parseTask(source), source, now)).rejects.toMatchObject({ code: 'SVC_FILE_UNREADABLE' });
  });
});
