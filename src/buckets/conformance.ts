import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { SvcError } from '../shared/errors.ts';
import type { ObjectStore } from './object-store.ts';
import { smallestPart } from './part-plan.ts';

interface StoreFixture {
  /** Opens the same bucket each time, as another process would. At first it does not exist. */
  readonly open: () => ObjectStore;
  /** Downloads a signed address without credentials, as a machine does. */
  readonly fetch: (address: string) => Promise<Buffer>;
}

interface StoreCase {
  readonly name: string;
  readonly run: (fixture: StoreFixture) => Promise<void>;
}

const settings = { tags: { 'svc-service-key': '0a1b2c3d' }, expireDays: 30 };
const contentOf = async (store: ObjectStore, key: string): Promise<string> => (await buffer(await store.get(key))).toString('utf8');
async function keysOf(store: ObjectStore, prefix: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key);
  return keys;
}

const bucketFault = (error: unknown): boolean => error instanceof SvcError && error.code === 'SVC_BUCKET';

/** With varying bytes, so that parts in the wrong order are detected. */
async function withFile(size: number, use: (path: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'svc-store-'));
  try {
    const path = join(dir, 'file');
    writeFileSync(path, '');
    const file = await open(path, 'r+');
    try {
      await file.truncate(size);
      for (let at = 0; at < size; at += smallestPart / 2) await file.write(`at ${at} `, at);
    } finally {
      await file.close();
    }
    await use(path);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The conformance suite for stores. Each case gets its own bucket, which does not exist yet. */
export const storeCases: readonly StoreCase[] = [
  {
    name: 'get returns the object that put wrote; a second put replaces it',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      await store.put('a/b.txt', 'first é漢');
      strictEqual(await contentOf(store, 'a/b.txt'), 'first é漢');
      await store.put('a/b.txt', Buffer.from('second'));
      strictEqual(await contentOf(openStore(), 'a/b.txt'), 'second');
      await store.put('empty', '');
      strictEqual(await contentOf(store, 'empty'), '');
    },
  },
  {
    name: 'missing objects are distinguished from existing ones',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      strictEqual(await store.head('missing'), undefined);
      await rejects(store.get('missing'), bucketFault);
      await store.delete('missing');
      await store.put('there', 'four');
      deepStrictEqual(await store.head('there'), { key: 'there', size: 4 });
      await store.delete('there');
      strictEqual(await store.head('there'), undefined);
    },
  },
  {
    name: 'a listing has the keys with a prefix in byte order',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      const keys = ['p/a b+c&d', 'p/ü漢🙂', 'p/%41', 'p/z', 'p-not/x', 'q'];
      for (const key of keys) await store.put(key, key);
      deepStrictEqual(await keysOf(store, 'p/'), ['p/%41', 'p/a b+c&d', 'p/z', 'p/ü漢🙂']);
      deepStrictEqual((await keysOf(store, '')).length, keys.length);
      deepStrictEqual(await keysOf(store, 'nothing'), []);
      for (const key of keys) strictEqual(await contentOf(store, key), key);
    },
  },
  {
    name: 'creating a bucket twice succeeds and keeps its objects',
    async run({ open: openStore }) {
      await openStore().createBucket(settings);
      await openStore().put('kept', 'x');
      await openStore().createBucket(settings);
      strictEqual(await contentOf(openStore(), 'kept'), 'x');
    },
  },
  {
    name: 'deleting a bucket removes its objects; deleting it again succeeds',
    async run({ open: openStore }) {
      const store = openStore();
      await store.deleteBucket();
      await store.createBucket(settings);
      for (let index = 0; index < 5; index += 1) await store.put(`deep/er/${index}`, 'x');
      await store.deleteBucket();
      await rejects(store.put('late', 'x'), bucketFault);
      await store.deleteBucket();
    },
  },
  {
    name: 'put into a missing bucket fails',
    async run({ open: openStore }) {
      await rejects(openStore().put('key', 'x'), bucketFault);
    },
  },
  {
    name: 'a signed address gives the object without credentials',
    async run({ open: openStore, fetch }) {
      const store = openStore();
      await store.createBucket(settings);
      await store.put('blobs/a b', 'signed');
      strictEqual((await fetch(await store.presignGet('blobs/a b', 60))).toString(), 'signed');
    },
  },
  {
    name: 'a large file arrives complete and reports its progress',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      const size = 2 * smallestPart + 12_345;
      await withFile(size, async (path) => {
        let sent = 0;
        await store.putFile('large', path, { onBytes: (bytes) => (sent += bytes) });
        strictEqual(sent, size);
        deepStrictEqual(await store.head('large'), { key: 'large', size });
        const content = await buffer(await store.get('large'));
        for (let at = 0; at < size; at += smallestPart / 2) ok(content.subarray(at).toString('latin1', 0, 20).startsWith(`at ${at} `));
      });
    },
  },
  {
    name: 'a small file and an empty file arrive complete',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      await withFile(0, (path) => store.putFile('none', path));
      await withFile(100, (path) => store.putFile('some', path));
      deepStrictEqual([(await store.head('none'))?.size, (await store.head('some'))?.size], [0, 100]);
    },
  },
  {
    name: 'an aborted upload of a large file is resumed',
    async run({ open: openStore }) {
      await openStore().createBucket(settings);
      const size = 4 * smallestPart;
      await withFile(size, async (path) => {
        const stop = new AbortController();
        const sending = openStore().putFile('large', path, { signal: stop.signal, onBytes: () => stop.abort() });
        await sending.catch((error: unknown) => ok(stop.signal.aborted, String(error)));
        let sent = 0;
        const store = openStore();
        await store.putFile('large', path, { onBytes: (bytes) => (sent += bytes) });
        strictEqual(sent, size);
        strictEqual((await store.head('large'))?.size, size);
        strictEqual((await keysOf(store, '')).join(), 'large');
      });
    },
  },
  {
    name: 'a bucket with an unfinished upload can be removed',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      await withFile(3 * smallestPart, async (path) => {
        const stop = new AbortController();
        await store.putFile('large', path, { signal: stop.signal, onBytes: () => stop.abort() }).catch(() => undefined);
      });
      await store.deleteBucket();
      await rejects(store.put('late', 'x'), bucketFault);
    },
  },
  {
    name: 'a call with an aborted signal has no effect',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      await rejects(store.put('key', 'x', { signal: AbortSignal.abort() }));
      strictEqual(await store.head('key'), undefined);
    },
  },
  {
    name: 'keys that point outside the bucket are refused',
    async run({ open: openStore }) {
      const store = openStore();
      await store.createBucket(settings);
      for (const key of ['', '/a', 'a/../b', 'a//b', '.', 'a/']) await rejects(async () => store.put(key, 'x'), /key of an object/);
    },
  },
];
