import { expect, test } from 'vitest';
import { isInBackup, isReadable, readManifest, schemaVersion } from './backup.ts';

test.for([
  'config.yaml',
  'ssh_pools.yaml',
  'ssh/id_ed25519',
  'ssh/machines/a.json',
  'kubernetes/notes/a.json',
  'kubernetes/0a1b/known',
  'services/k/v1/workdir/server.log',
  'services/k/v1/replicas',
  'services/k/tls/key.pem',
  'services/k/buckets.json',
  'services/k/balancer.json',
  'clusters/k/jobs/1/run.sh',
  'a-file-of-a-later-version.json',
])('%s is in a backup', (path) => {
  expect(isInBackup(path)).toBe(true);
});

test.for([
  'run',
  'local',
  'programs',
  'reserve',
  'uploads',
  'machines',
  'state.db',
  'state.db-wal',
  'state.db.seal',
  'state.db-wal.20261126T000000Z',
  'controller.log',
  'controller.log.1',
  'before-restore-2026',
  'restore-0a',
  'boot.json',
  'ssh/ways',
  'kubernetes/0a1b/ways',
  'services/k/access.log',
  'services/k/replicas',
  'services/k/replicas.json',
  'services/k/reconciler.identity.json',
])('%s is left out', (path) => {
  expect(isInBackup(path)).toBe(false);
});

test('a manifest needs its format, schema, version and time', () => {
  const manifest = { format: 1, schema: 6, version: '1.0.0', createdAt: '2026-01-01T00:00:00Z', services: ['chat'] };
  expect(readManifest(JSON.stringify(manifest))).toEqual(manifest);
  expect(readManifest(JSON.stringify({ ...manifest, schema: undefined }))).toBeUndefined();
  expect(readManifest('truncat')).toBeUndefined();
});

test('an older schema is readable; a newer schema or format is not', () => {
  expect(isReadable({ format: 1, schema: 1 })).toBe(true);
  expect(isReadable({ format: 1, schema: schemaVersion + 1 })).toBe(false);
  expect(isReadable({ format: 2, schema: 1 })).toBe(false);
});
