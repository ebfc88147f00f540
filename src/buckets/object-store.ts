import type { Readable } from 'node:stream';
import { SvcError } from '../shared/errors.ts';

/** Calls to a bucket can be cancelled. */
export interface BucketCallOptions {
  readonly signal?: AbortSignal;
}

/** Settings of a new bucket. Every bucket is private. */
export interface BucketSettings {
  readonly tags: Readonly<Record<string, string>>;
  /** The store removes objects this many days after the upload, in case svc never removes them. */
  readonly expireDays: number;
}

/** Options of an upload from a file. */
export interface PutFileOptions extends BucketCallOptions {
  /** Called with the number of bytes that have arrived since the last call. Bytes from an earlier attempt count too. */
  readonly onBytes?: (bytes: number) => void;
}

/** An object in a listing. */
export interface StoredObject {
  readonly key: string;
  /** Bytes */
  readonly size: number;
}

/**
 * One bucket. Keys are non-empty paths with `/` and without `.` and `..` parts. Failures are SVC_CREDENTIALS,
 * SVC_DENIED or SVC_BUCKET. SVC_BUCKET may be transient; implementations retry a few times before they throw it. All
 * implementations pass one conformance suite.
 */
export interface ObjectStore {
  readonly bucket: string;
  /** Creates the bucket. For an existing bucket of the same owner, updates its settings and succeeds. */
  createBucket(settings: BucketSettings, options?: BucketCallOptions): Promise<void>;
  /** Removes the bucket with its content and unfinished uploads; succeeds when there is none. */
  deleteBucket(options?: BucketCallOptions): Promise<void>;
  /** Writes a small object atomically: readers see the old or the new content. */
  put(key: string, content: Uint8Array | string, options?: BucketCallOptions): Promise<void>;
  /**
   * Uploads a file in constant memory. A large file is sent in parts, and an attempt after a crash sends only the
   * missing ones. A key must therefore stand for one content, as keys made from hashes do.
   */
  putFile(key: string, path: string, options?: PutFileOptions): Promise<void>;
  /** Reads an object; throws SVC_BUCKET when there is none. */
  get(key: string, options?: BucketCallOptions): Promise<Readable>;
  /** Size of an object; undefined when there is none. */
  head(key: string, options?: BucketCallOptions): Promise<StoredObject | undefined>;
  /** All objects whose keys begin with `prefix`, in byte order of the keys. */
  list(prefix: string, options?: BucketCallOptions): AsyncIterable<StoredObject>;
  /** Removes an object; succeeds when there is none. */
  delete(key: string, options?: BucketCallOptions): Promise<void>;
  /**
   * An address that grants read access for `seconds` (at most 7 days) without credentials. It is a secret until it
   * expires.
   */
  presignGet(key: string, seconds: number): Promise<string>;
  /** The object's name for users and logs, such as `s3://bucket/key`. */
  uri(key: string): string;
  /** Closes connections. */
  close(): void;
}

/** Throws SVC_INTERNAL for a key that some kind of store cannot hold, or that points outside the bucket's folder. */
export function checkKey(key: string): void {
  const isSound = key !== '' && key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSound || key.includes('\0')) throw new SvcError('SVC_INTERNAL', `'${key}' cannot be the key of an object.`);
}
