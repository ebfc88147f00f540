import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { aService, aVersion } from '../../../test/support/builders.ts';
import { needs } from '../../../test/support/needs.ts';
import { closeSharedPostgres, newSchema } from '../../../test/support/postgres.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { readTree, writeTree } from '../../../test/support/trees.ts';
import { systemClock } from '../../shared/clock.ts';
import { openStore } from '../../store/open-store.ts';
import type { Store } from '../../store/store.ts';
import { serviceFiles, sweepFiles } from './service-files.ts';

async function withShared(use: (store: Store, home: string) => Promise<void>): Promise<void> {
  const database = await newSchema();
  await withTempHome(async (home) => {
    const store = await openStore({ path: '', database, clock: systemClock });
    try {
      await use(store, home);
    } finally {
      await store.close();
    }
  });
}

needs('postgres', () => {
  afterAll(closeSharedPostgres);

  test('a folder is restored with modes, times, links and empty entries', async () => {
    await withShared(async (store, home) => {
      const from = join(home, 'v1');
      mkdirSync(join(from, 'workdir', 'closed'), { recursive: true });
      mkdirSync(join(from, 'workdir', 'empty'));
      const large = randomBytes(2_500_000);
      writeFileSync(join(from, 'workdir', 'large.bin'), large);
      for (let index = 0; index < 40; index += 1) writeFileSync(join(from, 'workdir', `small-${index}`), randomBytes(50_000));
      writeFileSync(join(from, 'workdir', 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
      writeFileSync(join(from, 'workdir', 'closed', 'key \u{1f511}'), 'secret', { mode: 0o600 });
      writeFileSync(join(from, 'workdir', 'nothing'), '');
      symlinkSync('../elsewhere', join(from, 'workdir', 'link'));
      utimesSync(join(from, 'workdir', 'run.sh'), 1_000_000_000, 1_000_000_000);
      chmodSync(join(from, 'workdir', 'closed'), 0o500);

      await serviceFiles(store).save('key', 'v1', from);
      const to = join(home, 'other', 'services', 'key', 'v1');
      await serviceFiles(store).restore('key', 'v1', to);

      expect(readTree(to)).toEqual(readTree(from));
      expect(readdirSync(join(home, 'other', 'services', 'key'))).toEqual(['v1']);
    });
  });

  test('an existing folder is left unchanged, and nothing is restored without a saved tree', async () => {
    await withShared(async (store, home) => {
      const files = serviceFiles(store);
      const own = join(home, 'v1');
      mkdirSync(own);
      await files.save('key', 'v1', own);
      writeFileSync(join(own, 'later'), 'x');
      await files.restore('key', 'v1', own);
      expect(readdirSync(own)).toEqual(['later']);
      await files.restore('key', 'v2', join(home, 'v2'));
      await files.save('key', 'v3', join(home, 'v3'));
      expect(existsSync(join(home, 'v2'))).toBe(false);
      expect([...(await store.files.trees('key')).keys()]).toEqual(['v1']);
    });
  });

  test('equal content is stored once for all versions and removed with its owner', async () => {
    await withShared(async (store, home) => {
      const files = serviceFiles(store);
      const content = randomBytes(1_500_000);
      for (const version of ['v1', 'v2']) {
        mkdirSync(join(home, version));
        writeFileSync(join(home, version, 'model.bin'), content);
        await files.save('key', version, join(home, version));
      }
      await files.save('other', 'v1', join(home, 'v1'));
      expect((await store.files.blocks('key')).size).toBe(2);
      expect((await store.files.owners()).toSorted()).toEqual(['key', 'other']);
      await files.remove('key');
      expect(await store.files.owners()).toEqual(['other']);
      expect((await store.files.blocks('key')).size).toBe(0);
    });
  });

  test('the next leader deletes the files of owners without a record only', async () => {
    await withShared(async (store, home) => {
      const service = aService();
      await store.services.add(service, aVersion(), anEvent(), 16);
      for (const owner of [service.key, 'lost']) await serviceFiles(store).save(owner, 'v1', home);
      await sweepFiles(store);
      expect(await store.files.owners()).toEqual([service.key]);
    });
  });

  test('renew replaces the local copy of a changing file; restoreAll skips it', async () => {
    await withShared(async (store, home) => {
      const files = serviceFiles(store);
      const [savedFile, restoredFile] = [join(home, 'there', 'buckets.json'), join(home, 'here', 'buckets.json')];
      for (const text of ['one', 'two']) {
        writeTree(join(home, 'there'), { 'buckets.json': text });
        await files.save('key', 'buckets.json', savedFile);
        await files.renew('key', 'buckets.json', restoredFile);
        expect(readFileSync(restoredFile, 'utf8')).toBe(text);
      }
      await files.renew('other', 'buckets.json', restoredFile);
      expect(readFileSync(restoredFile, 'utf8')).toBe('two');
      await files.restoreAll('key', join(home, 'elsewhere'));
      expect(existsSync(join(home, 'elsewhere'))).toBe(false);
    });
  });

  test('too large a folder is refused before anything is stored', async () => {
    await withShared(async (store, home) => {
      writeFileSync(join(home, 'big'), Buffer.alloc(3_000_000));
      await expect(serviceFiles(store, 2 * 1_048_576).save('key', 'v1', home)).rejects.toMatchObject({
        code: 'SVC_NOT_SUPPORTED',
        message:
          'The working directory and the files to mount are 3 MiB; with a state database at most 2 MiB can be kept for other controllers.',
      });
      expect(await store.files.owners()).toEqual([]);
    });
  });

  test('damaged content and paths outside the folder are refused, and nothing is left', async () => {
    await withShared(async (store, home) => {
      const to = join(home, 'services', 'v1');
      const file = { kind: 'file', path: 'a', mode: 0o600, mtime: 1, size: 1, parts: [{ sha256: 'f'.repeat(64), offset: 0, length: 1 }] };
      const folder = { kind: 'folder', path: '', mode: 0o700, mtime: 1 };
      await store.files.setTree('key', 'v1', JSON.stringify({ entries: [folder, file] }));
      await expect(serviceFiles(store).restore('key', 'v1', to)).rejects.toMatchObject({ code: 'SVC_STATE_CORRUPT' });
      await store.files.addBlock('key', 'f'.repeat(64), Buffer.from('x'));
      await expect(serviceFiles(store).restore('key', 'v1', to)).rejects.toMatchObject({ code: 'SVC_STATE_CORRUPT' });
      await store.files.setTree('key', 'v1', JSON.stringify({ entries: [folder, { kind: 'link', path: '../out', target: '/' }] }));
      await expect(serviceFiles(store).restore('key', 'v1', to)).rejects.toMatchObject({ code: 'SVC_STATE_CORRUPT' });
      expect(readdirSync(join(home, 'services'))).toEqual([]);
    });
  });
});

test("with SQLite no files are stored: the controller's folder has them all", async () => {
  await withTempHome(async (home) => {
    const store = await openStore({ path: join(home, 'state.db'), clock: systemClock });
    mkdirSync(join(home, 'v1'));
    await serviceFiles(store).save('key', 'v1', join(home, 'v1'));
    expect(await store.files.owners()).toEqual([]);
    await store.close();
  });
});
