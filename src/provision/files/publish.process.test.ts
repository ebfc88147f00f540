import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { writeTree } from '../../../test/support/trees.ts';
import { DirectoryStore } from '../../buckets/directory.ts';
import type { BucketCallOptions, PutFileOptions } from '../../buckets/object-store.ts';
import { isBlob } from './manifest.ts';
import { publishTree, type PublishProgress } from './publish.ts';

/** Counts writes and fails at one of them: before the write, or after it without an answer. */
class MortalStore extends DirectoryStore {
  writes = 0;
  readonly written: string[] = [];
  /** The write that fails; a fractional value (.5) fails after the write. */
  endsAt = Number.POSITIVE_INFINITY;

  override put(key: string, content: Uint8Array | string, options?: BucketCallOptions): Promise<void> {
    return this.#write(key, () => super.put(key, content, options));
  }

  override putFile(key: string, path: string, options?: PutFileOptions): Promise<void> {
    return this.#write(key, () => super.putFile(key, path, options));
  }

  async #write(key: string, act: () => Promise<void>): Promise<void> {
    this.writes += 1;
    const number = this.writes;
    if (number === this.endsAt) throw new Error('killed before');
    await act();
    this.written.push(key);
    if (number + 0.5 === this.endsAt) throw new Error('killed after');
  }
}

async function aStore(home: string, name: string): Promise<MortalStore> {
  const store = new MortalStore(join(home, 'buckets'), name);
  await store.createBucket({ tags: {}, expireDays: 1 });
  return store;
}

test('a publication killed at any write is resumed with the same result', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'tree');
    // Three packs and two large files.
    for (let index = 0; index < 22; index += 1) writeTree(root, { [`small/${index}`]: `${index} `.repeat(300_000) });
    writeTree(root, { large: 'L'.repeat(2_000_000), 'large too': 'M'.repeat(2_000_000), link: { link: 'large' }, empty: { mode: 0o755 } });
    const whole = await aStore(home, 'whole');
    const expected = await publishTree(whole, 'v1', root);
    expect(whole.writes).toBeGreaterThan(8);
    for (let endsAt = 1; endsAt <= whole.writes + 0.5; endsAt += 0.5) {
      const store = await aStore(home, `at-${endsAt}`);
      store.endsAt = endsAt;
      await expect(publishTree(store, 'v1', root)).rejects.toThrow('killed');
      store.endsAt = Number.POSITIVE_INFINITY;
      expect((await publishTree(store, 'v1', root)).entries).toEqual(expected.entries);
      const large = store.written.filter((key) => key.startsWith('blobs/'));
      expect(new Set(large).size).toBe(large.length);
      await store.deleteBucket();
    }
  });
});

test('objects that the store has removed are published again', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'tree');
    writeTree(root, { small: 's', large: 'L'.repeat(2_000_000) });
    const store = await aStore(home, 'bucket');
    const first = await publishTree(store, 'v1', root);
    for await (const { key } of store.list('packs/')) await store.delete(key);
    for await (const { key } of store.list('blobs/')) await store.delete(key);
    store.written.length = 0;
    expect(await publishTree(store, 'v1', root)).toEqual(first);
    expect(new Set(store.written.map((key) => key.split('/')[0]))).toEqual(new Set(['blobs', 'indexes', 'manifests', 'packs']));
  });
});

test('20,000 small files become a few objects, each uploaded once', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'tree');
    for (let folder = 0; folder < 200; folder += 1) {
      mkdirSync(join(root, String(folder)), { recursive: true });
      for (let file = 0; file < 100; file += 1) writeFileSync(join(root, `${folder}/${file}.txt`), `${folder} ${file}`);
    }
    const store = await aStore(home, 'bucket');
    const manifest = await publishTree(store, 'v1', root);
    expect(manifest.entries.filter(({ kind }) => kind === 'file')).toHaveLength(20_000);
    expect(store.writes).toBeLessThan(12);
    writeFileSync(join(root, '7/7.txt'), 'changed');
    let last: PublishProgress | undefined;
    await publishTree(store, 'v2', root, { onProgress: (progress) => (last = progress) });
    expect(last).toMatchObject({ files: 20_000, totalFiles: 20_000 });
    expect(last?.sentBytes).toBeLessThan(10_000);
  });
});

test('a large file is read in parts, not into memory at once', async () => {
  await withTempHome(async (home) => {
    const root = join(home, 'tree');
    writeTree(root, { 'model.bin': 'start' });
    truncateSync(join(root, 'model.bin'), 300_000_000);
    const store = await aStore(home, 'bucket');
    const before = process.memoryUsage().arrayBuffers;
    const { entries } = await publishTree(store, 'v1', root);
    expect(entries.filter((entry) => entry.kind === 'file').filter(isBlob)).toHaveLength(1);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100_000_000);
  });
});
