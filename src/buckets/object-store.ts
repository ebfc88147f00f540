import type { Readable } from 'node:stream';
import { SvcError } from '../shared/errors.ts';

/** Calls to a bucket can be cancelled. */
export interface BucketCallOptions {
  readonly signal?: AbortSignal;
}

/** Settings of a new bucket, which is always private. */
export interface BucketSettings {
  readonly tags: Readonly<Record<string, string>>;
  /** Days from an object's upload until the store removes it, in case svc never does. */
  readonly expireDays: number;
}

/** Options of an upload from a file. */
export interface PutFileOptions extends BucketCallOptions {
  /** Gets the number of bytes that arrived since its last call, including those of an earlier attempt. */
  readonly onBytes?: (bytes: number) => void;
}

/** An object in a listing. */
export interface StoredObject {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
}

/**
 * One bucket. Keys are non-empty paths with `/`, without `.` and `..`. Throws SVC_CREDENTIALS, SVC_DENIED, or after a
 * few retries SVC_BUCKET, which may be transient. All implementations pass one conformance suite.
 */
export interface ObjectStore {
  readonly bucket: string;
  /** Creates the bucket, or updates the settings of an existing one of the same owner. */
  createBucket(settings: BucketSettings, options?: BucketCallOptions): Promise<void>;
  /** Also removes the content and unfinished uploads; succeeds without a bucket. */
  deleteBucket(options?: BucketCallOptions): Promise<void>;
  /** Readers see the old or the new content, never a part. For small objects. */
  put(key: string, content: Uint8Array | string, options?: BucketCallOptions): Promise<void>;
  /**
   * Uploads a file in constant memory. A large one is sent in parts, and an attempt after a crash sends only those that
   * are missing. A key must therefore stand for one content, as a hash does.
   */
  putFile(key: string, path: string, options?: PutFileOptions): Promise<void>;
  /** Throws SVC_BUCKET when the object does not exist. */
  get(key: string, options?: BucketCallOptions): Promise<Readable>;
  /** Undefined when the object does not exist. */
  head(key: string, options?: BucketCallOptions): Promise<StoredObject | undefined>;
  /** Objects whose keys begin with `prefix`, in byte order of the keys. */
  list(prefix: string, options?: BucketCallOptions): AsyncIterable<StoredObject>;
  /** Succeeds when the object does not exist. */
  delete(key: string, options?: BucketCallOptions): Promise<void>;
  /** An address to read the object without credentials for `seconds` (at most 7 days); secret until then. */
  presignGet(key: string, seconds: number): Promise<string>;
  /** For users and logs, such as `s3://bucket/key`. */
  uri(key: string): string;
  close(): void;
}

/** Throws SVC_INTERNAL for a key that some store cannot hold, or that points outside the bucket's folder. */
export function checkKey(key: string): void {
  const isSound = key !== '' && key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSound || key.includes('\0')) throw new SvcError('SVC_INTERNAL', `'${key}' cannot be the key of an object.`);
}
