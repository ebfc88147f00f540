import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ObjectStore } from '../../buckets/object-store.ts';
import { SvcError } from '../../shared/errors.ts';
import { parseJson } from '../../shared/json.ts';
import { isBlob, isManifest, indexPrefix, objectKeys, type Manifest, type ManifestEntry, type PublishedObject } from './manifest.ts';
import { sha256OfFile } from './file-digest.ts';
import { isPackIndex, memberId, PackBuilder, sha256Of, usePacks, type NewPack, type PackedFile, type PackIndex } from './packs.ts';
import { scanTree, type TreeEntry } from './scan.ts';
import { tarEnd, tarMember } from './tar.ts';

/** Progress of a publication. */
export interface PublishProgress {
  readonly files: number;
  readonly totalFiles: number;
  /** Of completed files, and of uploaded parts of large ones. */
  readonly bytes: number;
  readonly totalBytes: number;
  /** Uploaded; the bucket had the rest. */
  readonly sentBytes: number;
}

interface PublishOptions {
  readonly onProgress?: (progress: PublishProgress) => void;
  readonly signal?: AbortSignal;
}

/** Concurrent files. Reading limits the speed of small ones. Each large one has several parts in flight. */
const blobsAtOnce = 2;
const readsAtOnce = 16;

/**
 * Uploads a folder or file and returns its manifest. `name` stands for an unchanging tree: if it is published, its
 * stored manifest is returned. Objects in the bucket, from any tree, are not uploaded again. The next attempt resumes
 * an aborted one.
 */
export async function publishTree(store: ObjectStore, name: string, root: string, options: PublishOptions = {}): Promise<Manifest> {
  const key = objectKeys.manifest(name);
  const call = options.signal === undefined ? {} : { signal: options.signal };
  const existing = await objectsIn(store, call);
  const before = (await store.head(key, call)) === undefined ? undefined : await readJson(store, key, call);
  if (isManifest(before) && keysOf(before).every((one) => existing.has(one))) return before;
  const { entries } = await scanTree(root, options.signal);
  const progress = new Progress(entries, options.onProgress);
  const published = new Map<string, ManifestEntry>();
  const known = await knownPacks(store, existing, call);
  const small = entries.filter((entry) => entry.kind === 'file').filter((entry) => !isBlob(entry));
  const packs = await publishSmall(store, root, small, known, published, progress, call);
  const large = entries.filter((entry) => entry.kind === 'file').filter(isBlob);
  await eachOf(large, blobsAtOnce, async (entry) => {
    published.set(entry.path, { ...entry, sha256: await publishBlob(store, join(root, entry.path), entry.size, progress, call) });
  });
  const all = entries.map((entry) => (entry.kind === 'file' ? fileOf(published, entry.path) : entry));
  const manifest: Manifest = {
    entries: all,
    packs: usePacks(
      all.filter((entry) => entry.kind !== 'file' || !isBlob(entry)),
      packs,
    ).packs,
    layouts: await publishLayouts(store, entries, call),
  };
  // Last: the manifest marks the tree as published.
  await store.put(key, JSON.stringify(manifest), call);
  return manifest;
}

type Call = { readonly signal?: AbortSignal };
type FileEntry = Extract<TreeEntry, { readonly kind: 'file' }>;

/** Packs the small files that no pack has. Returns all packs, known ones first. */
async function publishSmall(
  store: ObjectStore,
  root: string,
  files: readonly FileEntry[],
  known: readonly PackIndex[],
  published: Map<string, ManifestEntry>,
  progress: Progress,
  call: Call,
): Promise<readonly PackIndex[]> {
  const packed = new Set(known.flatMap(({ members }) => members.map(memberId)));
  const builder = new PackBuilder();
  const added: PackIndex[] = [];
  const send = async (pack: NewPack | undefined): Promise<void> => {
    if (pack === undefined) return;
    const { index, content } = pack;
    await store.put(objectKeys.pack(index.sha256), content, call);
    // After the pack itself: other publications rely on an indexed pack.
    await store.put(objectKeys.packIndex(index.sha256), JSON.stringify(index), call);
    added.push(index);
    progress.sent(content.length);
  };
  for (let first = 0; first < files.length; first += readsAtOnce) {
    call.signal?.throwIfAborted();
    const group = files.slice(first, first + readsAtOnce);
    const contents = await Promise.all(group.map(({ path }) => readFile(join(root, path))));
    for (const [index, entry] of group.entries()) {
      const content = contents[index] ?? Buffer.alloc(0);
      const file: PackedFile = { ...entry, size: content.length, sha256: sha256Of(content) };
      published.set(entry.path, file);
      if (!packed.has(memberId(file))) await send(builder.add(file, content));
      progress.done(1, entry.size);
    }
  }
  await send(builder.close());
  return [...known, ...added];
}

/** Uploads a large file unless the bucket has it; returns its SHA-256. */
async function publishBlob(store: ObjectStore, path: string, size: number, progress: Progress, call: Call): Promise<string> {
  const sha256 = await sha256OfFile(path, call.signal);
  const key = objectKeys.blob(sha256);
  if ((await store.head(key, call))?.size === size) {
    progress.done(1, size);
    return sha256;
  }
  const onBytes = (bytes: number): void => {
    progress.done(0, bytes);
    progress.sent(bytes);
  };
  await store.putFile(key, path, { ...call, onBytes });
  progress.done(1, 0);
  return sha256;
}

/** One archive for links, one for folders: in a single one, tar would lose modes of folders with links added late. */
async function publishLayouts(store: ObjectStore, entries: readonly TreeEntry[], call: Call): Promise<readonly PublishedObject[]> {
  const links = entries.filter((entry) => entry.kind === 'link');
  // Deepest first: a read-only folder gets its mode after its content.
  const folders = entries.filter((entry) => entry.kind === 'folder').toReversed();
  const layouts: PublishedObject[] = [];
  for (const members of [links, folders]) {
    if (members.length === 0) continue;
    const content = Buffer.concat([...members.map(tarMember), tarEnd]);
    const layout = { sha256: sha256Of(content), size: content.length };
    const key = objectKeys.layout(layout.sha256);
    if ((await store.head(key, call))?.size !== layout.size) await store.put(key, content, call);
    layouts.push(layout);
  }
  return layouts;
}

/** Keys of all objects that trees consist of, listed because the store may have expired old ones. */
async function objectsIn(store: ObjectStore, call: Call): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const prefix of ['blob', 'pack', 'layout'] as const) {
    for await (const { key } of store.list(objectKeys[prefix](''), call)) keys.add(key);
  }
  return keys;
}

function keysOf({ entries, packs, layouts }: Manifest): readonly string[] {
  const blobs = entries.filter((entry) => entry.kind === 'file').filter(isBlob);
  return [
    ...blobs.map(({ sha256 }) => objectKeys.blob(sha256)),
    ...packs.map(({ sha256 }) => objectKeys.pack(sha256)),
    ...layouts.map(({ sha256 }) => objectKeys.layout(sha256)),
  ];
}

/** A pack with an unreadable index counts as missing. */
async function knownPacks(store: ObjectStore, existing: ReadonlySet<string>, call: Call): Promise<readonly PackIndex[]> {
  const packs: PackIndex[] = [];
  for await (const { key } of store.list(indexPrefix, call)) {
    const index = await readJson(store, key, call);
    if (isPackIndex(index) && existing.has(objectKeys.pack(index.sha256))) packs.push(index);
  }
  return packs;
}

async function readJson(store: ObjectStore, key: string, call: Call): Promise<unknown> {
  return parseJson(await text(await store.get(key, call)));
}

function fileOf(published: ReadonlyMap<string, ManifestEntry>, path: string): ManifestEntry {
  const entry = published.get(path);
  if (entry === undefined) throw new SvcError('SVC_INTERNAL', `A file was left out while its tree was published.`);
  return entry;
}

async function eachOf<Item>(items: readonly Item[], atOnce: number, act: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const failed = new AbortController();
  const work = async (): Promise<void> => {
    for (const item of waiting) {
      if (failed.signal.aborted) return;
      try {
        await act(item);
      } catch (error) {
        failed.abort();
        throw error;
      }
    }
  };
  const results = await Promise.allSettled(Array.from({ length: atOnce }, work));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

class Progress {
  readonly #onProgress: ((progress: PublishProgress) => void) | undefined;
  #now: PublishProgress;

  constructor(entries: readonly TreeEntry[], onProgress: ((progress: PublishProgress) => void) | undefined) {
    const files = entries.filter((entry) => entry.kind === 'file');
    const totalBytes = files.reduce((total, { size }) => total + size, 0);
    this.#now = { files: 0, totalFiles: files.length, bytes: 0, totalBytes, sentBytes: 0 };
    this.#onProgress = onProgress;
  }

  done(files: number, bytes: number): void {
    this.#now = { ...this.#now, files: this.#now.files + files, bytes: this.#now.bytes + bytes };
    this.#onProgress?.(this.#now);
  }

  sent(bytes: number): void {
    this.#now = { ...this.#now, sentBytes: this.#now.sentBytes + bytes };
    this.#onProgress?.(this.#now);
  }
}
