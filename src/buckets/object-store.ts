import type { Readable } from 'node:stream';

/** Calls to a bucket can be cancelled. */
export interface BucketCallOptions {
  readonly signal?: AbortSignal;
}

/** What a new bucket is to be like. It is private in any case. */
export interface BucketSettings {
  readonly tags: Readonly<Record<string, string>>;
  /** Objects are removed by the store itself so many days after they were put there: the last resort when nobody else does it. */
  readonly expireDays: number;
}

/** How a large file is to be sent. */
export interface PutFileOptions extends BucketCallOptions {
  /** Called with the bytes that have arrived since the last call; what an earlier attempt had sent counts as well. */
  readonly onBytes?: (bytes: number) => void;
}

/** An object as a listing tells it. */
export interface StoredObject {
  readonly key: string;
  /** Bytes */
  readonly size: number;
}

/**
 * One bucket. Keys are non-empty paths with `/` and without `.` and `..` parts. Failures are SVC_CREDENTIALS, SVC_DENIED or SVC_BUCKET, the last of
 * which may pass; implementations ask again by themselves a few times before they throw it. Implementations pass one conformance suite.
 */
export interface ObjectStore {
  readonly bucket: string;
  /** Makes the bucket; one of ours that exists is made equal and is success. */
  createBucket(settings: BucketSettings, options?: BucketCallOptions): Promise<void>;
  /** Removes the bucket and everything in it, unfinished uploads too; success when there is none. */
  deleteBucket(options?: BucketCallOptions): Promise<void>;
  /** Writes a small object in one step: readers see all of it or what was there before. */
  put(key: string, content: Uint8Array | string, options?: BucketCallOptions): Promise<void>;
  /**
   * Sends a file in constant memory. A large one goes in parts, and an attempt after a crash sends only those that are missing: a key is to
   * stand for one content, as names made from hashes do.
   */
  putFile(key: string, path: string, options?: PutFileOptions): Promise<void>;
  /** An object's bytes; SVC_BUCKET when there is none. */
  get(key: string, options?: BucketCallOptions): Promise<Readable>;
  /** Its size, or undefined when there is none. */
  head(key: string, options?: BucketCallOptions): Promise<StoredObject | undefined>;
  /** Everything whose key begins with `prefix`, in the order of bytes of the keys. */
  list(prefix: string, options?: BucketCallOptions): AsyncIterable<StoredObject>;
  /** Success when there is none. */
  delete(key: string, options?: BucketCallOptions): Promise<void>;
  /** An address from which anybody can read the object for so many seconds (at most 7 days), without credentials. A secret as long as it lasts. */
  presignGet(key: string, seconds: number): Promise<string>;
  /** The object as users and logs name it, such as `s3://bucket/key`. */
  uri(key: string): string;
  /** Lets go of connections. */
  close(): void;
}
