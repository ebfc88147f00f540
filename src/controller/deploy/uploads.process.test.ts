import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aServiceSpec, aTask } from '../../../test/support/builders.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { homePaths } from '../../shared/paths.ts';
import { keepTlsFiles, removeOldUploads, withUploaded } from './uploads.ts';

const tls = { minVersion: '1.3' as const, keyfile: '/client/key.pem', certfile: '/client/chain.pem', clientCa: '/client/ca.pem' };
const task = aTask({ workdir: { kind: 'path', path: '/client/app' }, service: aServiceSpec({ tls }) });
const upload = `${'a'.repeat(16)}-00000001`;

test('the working directory of an upload replaces the one of the task', async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    expect(withUploaded(task, undefined, paths)).toBe(task);
    expect(withUploaded(task, upload, paths).workdir).toEqual({ kind: 'path', path: join(home, 'uploads', upload, 'workdir') });
  });
});

test('uploaded keys stay with the service, readable by their owner only', async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    const from = join(paths.uploadsDir, upload, 'tls');
    mkdirSync(from, { recursive: true });
    for (const name of ['key.pem', 'certificate.pem', 'client-ca.pem']) writeFileSync(join(from, name), name, { mode: 0o600 });
    const kept = (await keepTlsFiles(withUploaded(task, upload, paths), true, join(home, 'service'), 1)).service?.tls;
    expect(readFileSync(kept?.keyfile ?? '', 'utf8')).toBe('key.pem');
    expect(readFileSync(kept?.clientCa ?? '', 'utf8')).toBe('client-ca.pem');
    expect(kept?.minVersion).toBe('1.3');
    expect(readFileSync(kept?.certfile ?? '', 'utf8')).toBe('certificate.pem');
    expect(statSync(kept?.keyfile ?? '').mode & 0o777).toBe(0o600);
  });
});

test("a source's newest upload is kept for a week, superseded ones an hour", async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    const now = Date.parse('2026-06-01T00:00:00Z');
    const addUpload = (name: string, hoursAgo: number): void => {
      mkdirSync(join(paths.uploadsDir, name), { recursive: true });
      utimesSync(join(paths.uploadsDir, name), new Date(now - hoursAgo * 3_600_000), new Date(now - hoursAgo * 3_600_000));
    };
    addUpload('aaaa-1', 30);
    addUpload('aaaa-2', 2);
    addUpload('aaaa-3', 0.5);
    addUpload('bbbb-1', 24 * 8);
    addUpload('cccc-1', 24 * 6);
    await removeOldUploads(paths, now);
    expect(readdirSync(paths.uploadsDir).toSorted()).toEqual(['aaaa-3', 'cccc-1']);
  });
});

test('a home without uploads is left unchanged', async () => {
  await withTempHome(async (home) => {
    await removeOldUploads(homePaths(home, 0), 0);
    expect(existsSync(join(home, 'uploads'))).toBe(false);
  });
});
