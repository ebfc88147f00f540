import { constants, createReadStream, existsSync } from 'node:fs';
import { copyFile, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { hasErrno, messageOf, SvcError } from '../shared/errors.ts';
import { randomHex } from '../shared/hex.ts';
import {
  checkKey,
  type BucketCallOptions,
  type BucketSettings,
  type ObjectStore,
  type PutFileOptions,
  type StoredObject,
} from './object-store.ts';

/** A bucket's folder for incomplete writes; listings omit it. */
const unfinished = '.unfinished';

/** A local folder, for machines that share its disk, and for tests. Tags and expiry have no effect. */
export class DirectoryStore implements ObjectStore {
  readonly bucket: string;
  readonly #root: string;

  constructor(parent: string, bucket: string) {
    checkKey(bucket);
    this.bucket = bucket;
    this.#root = join(parent, bucket);
  }

  createBucket(_settings: BucketSettings, { signal }: BucketCallOptions = {}): Promise<void> {
    return this.#guard('make', '', async () => {
      signal?.throwIfAborted();
      await mkdir(join(this.#root, unfinished), { recursive: true, mode: 0o700 });
    });
  }

  deleteBucket({ signal }: BucketCallOptions = {}): Promise<void> {
    return this.#guard('remove', '', async () => {
      signal?.throwIfAborted();
      await rm(this.#root, { recursive: true, force: true });
    });
  }

  put(key: string, content: Uint8Array | string, { signal }: BucketCallOptions = {}): Promise<void> {
    return this.#writeAtomically(key, signal, async (temporary) => {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(content);
      } finally {
        await file.close();
      }
    });
  }

  async putFile(key: string, path: string, { signal, onBytes }: PutFileOptions = {}): Promise<void> {
    await this.#writeAtomically(key, signal, (temporary) =>
      copyFile(path, temporary, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE),
    );
    onBytes?.((await this.head(key))?.size ?? 0);
  }

  get(key: string, { signal }: BucketCallOptions = {}): Promise<Readable> {
    return this.#guard('read', key, async () => {
      // Opened first: this call, not the stream, reports a missing object.
      const file = await open(this.#path(key));
      return createReadStream('', { fd: file, ...(signal === undefined ? {} : { signal }) });
    });
  }

  head(key: string, { signal }: BucketCallOptions = {}): Promise<StoredObject | undefined> {
    return this.#guard('read', key, async () => {
      signal?.throwIfAborted();
      try {
        const stats = await stat(this.#path(key));
        return stats.isFile() ? { key, size: stats.size } : undefined;
      } catch (error) {
        if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
        throw error;
      }
    });
  }

  async *list(prefix: string, { signal }: BucketCallOptions = {}): AsyncGenerator<StoredObject> {
    const entries = await this.#guard('list', prefix, () => readdir(this.#root, { recursive: true, withFileTypes: true }));
    const keys = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.#root.length + 1))
      .filter((key) => key.startsWith(prefix) && !key.startsWith(`${unfinished}/`));
    for (const key of keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))) {
      const found = await this.head(key, signal === undefined ? {} : { signal });
      if (found !== undefined) yield found;
    }
  }

  delete(key: string, { signal }: BucketCallOptions = {}): Promise<void> {
    return this.#guard('remove', key, async () => {
      signal?.throwIfAborted();
      await rm(this.#path(key), { force: true });
    });
  }

  /** A `file:` address: readers of the folder need no signature. */
  presignGet(key: string): Promise<string> {
    return Promise.resolve(pathToFileURL(this.#path(key)).href);
  }

  uri(key: string): string {
    return pathToFileURL(join(this.#root, key)).href;
  }

  close(): void {
    // The store keeps no connection.
  }

  async #writeAtomically(key: string, signal: AbortSignal | undefined, write: (temporary: string) => Promise<void>): Promise<void> {
    await this.#guard('write', key, async () => {
      signal?.throwIfAborted();
      const path = this.#path(key);
      if (!existsSync(this.#root)) throw new Error('there is no such bucket');
      const temporary = join(this.#root, unfinished, randomHex(16));
      try {
        await mkdir(dirname(temporary), { recursive: true, mode: 0o700 });
        await write(temporary);
        signal?.throwIfAborted();
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    });
  }

  #path(key: string): string {
    checkKey(key);
    return join(this.#root, key);
  }

  async #guard<Result>(verb: string, key: string, act: () => Promise<Result>): Promise<Result> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof SvcError || (error instanceof Error && error.name === 'AbortError')) throw error;
      const code = hasErrno(error, 'ENOSPC', 'EDQUOT') ? 'SVC_NO_SPACE' : hasErrno(error, 'EACCES', 'EPERM') ? 'SVC_DENIED' : 'SVC_BUCKET';
      throw new SvcError(code, `Cannot ${verb} ${this.uri(key)}: ${messageOf(error)}`, { cause: error });
    }
  }
}
