import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WireValue } from '../wire/schema.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Checksum, ChecksumName } from './checksums.ts';
import type { StoredBody } from './stored-body.ts';

/** Stored properties of an object besides its bytes. */
export interface ObjectHeaders {
  /** `content-type`, `cache-control` and the like, and all `x-amz-meta-…`, names in lower case. */
  readonly [name: string]: string;
}

/** An object. */
export interface ObjectRecord {
  readonly key: string;
  readonly body: StoredBody;
  /** Without quotes. */
  readonly etag: string;
  readonly checksum: Checksum | undefined;
  readonly headers: ObjectHeaders;
  /** Ms since the epoch. */
  readonly modifiedAt: number;
}

/** A part of an upload. */
export interface PartRecord {
  readonly number: number;
  readonly body: StoredBody;
  readonly etag: string;
  readonly checksum: Checksum | undefined;
  readonly modifiedAt: number;
}

/** A multipart upload. */
export interface UploadRecord {
  readonly id: string;
  readonly key: string;
  readonly checksum: { readonly name: ChecksumName; readonly type: Checksum['type'] } | undefined;
  readonly headers: ObjectHeaders;
  readonly startedAt: number;
  readonly parts: Map<number, PartRecord>;
}

/** A bucket. */
export interface BucketRecord {
  readonly name: string;
  readonly region: string;
  readonly createdAt: number;
  readonly tags: Map<string, string>;
  publicAccess: WireValue | undefined;
  lifecycle: WireValue | undefined;
  readonly objects: ObjectTable;
  readonly uploads: Map<string, UploadRecord>;
}

/** Objects by key; lists them in the byte order of keys. */
export class ObjectTable {
  readonly #byKey = new Map<string, ObjectRecord>();
  #sorted: readonly ObjectRecord[] | undefined;

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): ObjectRecord | undefined {
    return this.#byKey.get(key);
  }

  /** Disposes of the former object of that key. */
  set(object: ObjectRecord): void {
    this.#drop(object.key);
    this.#byKey.set(object.key, object);
  }

  delete(key: string): void {
    this.#drop(key);
  }

  /** In order of UTF-8 bytes, as S3 lists them. */
  sorted(): readonly ObjectRecord[] {
    this.#sorted ??= [...this.#byKey.values()]
      .map((object) => ({ object, bytes: Buffer.from(object.key) }))
      .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
      .map(({ object }) => object);
    return this.#sorted;
  }

  #drop(key: string): void {
    void this.#byKey.get(key)?.body.dispose();
    this.#byKey.delete(key);
    this.#sorted = undefined;
  }
}

/** All buckets of the account. `close` removes the folder of large bodies. */
export class BucketStore {
  readonly buckets = new Map<string, BucketRecord>();
  /** Names that belong to other accounts. */
  readonly namesOfOtherAccounts = new Set<string>();
  readonly folder = mkdtempSync(join(tmpdir(), 'fake-s3-'));

  /** Throws when the bucket does not exist. */
  get(name: string): BucketRecord {
    const bucket = this.buckets.get(name);
    if (bucket === undefined) throw new ApiError('NoSuchBucket', 'The specified bucket does not exist', 404, { BucketName: name });
    return bucket;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
