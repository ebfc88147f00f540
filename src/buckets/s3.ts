import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type Part,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  paginateListObjectsV2,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/json.ts';
import {
  checkKey,
  type BucketCallOptions,
  type BucketSettings,
  type ObjectStore,
  type PutFileOptions,
  type StoredObject,
} from './object-store.ts';
import { type FilePart, planParts, smallestPart } from './part-plan.ts';
import { type S3Bucket, type UploadId, callOptions, createS3Bucket, deleteS3Bucket, listParts, listUploads } from './s3-bucket.ts';
import { guardS3, isMissing, s3Code } from './s3-errors.ts';
import type { BucketLocation } from '../domain/bucket-location.ts';
import { envVar } from '../shared/env.ts';

/** A bucket of Amazon's S3 or a compatible service. Sends no request. */
export function openS3Store(location: S3Location, bucket: string): ObjectStore {
  return new S3Store({ client: openS3Client(location), bucket, region: location.region, isAmazon: s3Endpoint(location) === undefined });
}

/** An existing bucket's region: a signed address is valid only for the right one. */
export async function findS3Region(location: S3Location, bucket: string, { signal }: BucketCallOptions = {}): Promise<string> {
  const client = openS3Client(location);
  try {
    return await guardS3(`find the bucket s3://${bucket}`, async () => {
      try {
        return (await client.send(new HeadBucketCommand({ Bucket: bucket }), callOptions(signal))).BucketRegion ?? location.region;
      } catch (error) {
        // The response in a wrong region names the right one.
        const region = regionIn(error);
        if (region !== undefined) return region;
        throw error;
      }
    });
  } finally {
    client.destroy();
  }
}

/** From the redirect in a wrong region. */
function regionIn(error: unknown): string | undefined {
  const response: unknown = error instanceof Error && '$response' in error ? error.$response : undefined;
  if (!isObject(response) || (response['statusCode'] !== 301 && response['statusCode'] !== 307)) return undefined;
  const { headers } = response;
  const region = isObject(headers) ? headers['x-amz-bucket-region'] : undefined;
  return typeof region === 'string' ? region : undefined;
}

class S3Store implements ObjectStore {
  readonly bucket: string;
  readonly #of: S3Bucket;

  constructor(of: S3Bucket) {
    this.bucket = of.bucket;
    this.#of = of;
  }

  createBucket(settings: BucketSettings, { signal }: BucketCallOptions = {}): Promise<void> {
    return guardS3(`make the bucket s3://${this.bucket}`, () => createS3Bucket(this.#of, settings, signal));
  }

  deleteBucket(options: BucketCallOptions = {}): Promise<void> {
    return guardS3(`remove the bucket s3://${this.bucket}`, () => deleteS3Bucket(this.#of, () => this.#list('', options), options.signal));
  }

  async put(key: string, content: Uint8Array | string, { signal }: BucketCallOptions = {}): Promise<void> {
    // A buffer, because the SDK needs the length even of an empty body.
    const command = new PutObjectCommand({ ...this.#at(key), Body: Buffer.from(content) });
    await guardS3(`write ${this.uri(key)}`, () => this.#of.client.send(command, callOptions(signal)));
  }

  async putFile(key: string, path: string, options: PutFileOptions = {}): Promise<void> {
    checkKey(key);
    await guardS3(`write ${this.uri(key)}`, async () => {
      const { size } = await stat(path);
      if (size < smallestPart) {
        await this.put(key, await readFile(path), options);
        options.onBytes?.(size);
        return;
      }
      try {
        await sendInParts(this.#of, key, path, size, options);
      } catch (error) {
        // Another process may have completed the same upload just now.
        if (s3Code(error) !== 'NoSuchUpload' || (await this.head(key, options))?.size !== size) throw error;
      }
    });
  }

  get(key: string, { signal }: BucketCallOptions = {}): Promise<Readable> {
    const command = new GetObjectCommand(this.#at(key));
    return guardS3(`read ${this.uri(key)}`, async () => {
      const { Body } = await this.#of.client.send(command, callOptions(signal));
      if (!(Body instanceof Readable)) throw new SvcError('SVC_BUCKET', `${this.uri(key)} came without content.`);
      return Body;
    });
  }

  head(key: string, { signal }: BucketCallOptions = {}): Promise<StoredObject | undefined> {
    const command = new HeadObjectCommand(this.#at(key));
    return guardS3(`read ${this.uri(key)}`, async () => {
      try {
        const { ContentLength = 0 } = await this.#of.client.send(command, callOptions(signal));
        return { key, size: ContentLength };
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }

  async *list(prefix: string, options: BucketCallOptions = {}): AsyncGenerator<StoredObject> {
    const pages = this.#list(prefix, options);
    for (;;) {
      const next = await guardS3(`list ${this.uri(prefix)}`, () => pages.next());
      if (next.done === true) return;
      yield next.value;
    }
  }

  async delete(key: string, { signal }: BucketCallOptions = {}): Promise<void> {
    const command = new DeleteObjectCommand(this.#at(key));
    await guardS3(`remove ${this.uri(key)}`, () => this.#of.client.send(command, callOptions(signal)));
  }

  presignGet(key: string, seconds: number): Promise<string> {
    const command = new GetObjectCommand(this.#at(key));
    return guardS3(`sign an address of ${this.uri(key)}`, () => getSignedUrl(this.#of.client, command, { expiresIn: seconds }));
  }

  uri(key: string): string {
    return `s3://${this.bucket}/${key}`;
  }

  close(): void {
    this.#of.client.destroy();
  }

  #at(key: string): { readonly Bucket: string; readonly Key: string } {
    checkKey(key);
    return { Bucket: this.bucket, Key: key };
  }

  /** Requests encoded keys: XML cannot represent every character. */
  async *#list(Prefix: string, { signal }: BucketCallOptions): AsyncGenerator<StoredObject> {
    const { client } = this.#of;
    const query = { Bucket: this.bucket, Prefix, EncodingType: 'url' } as const;
    for await (const page of paginateListObjectsV2({ client }, query, callOptions(signal))) {
      const isEncoded = page.EncodingType === 'url';
      for (const { Key = '', Size = 0 } of page.Contents ?? []) {
        yield { key: isEncoded ? decodeURIComponent(Key.replaceAll('+', ' ')) : Key, size: Size };
      }
    }
  }
}

type S3Location = Extract<BucketLocation, { readonly kind: 's3' }>;

/** Including the first. The SDK retries transient errors (throttling, 5xx, broken connections) with growing backoff. */
const maxAttempts = 5;
const connectionTimeoutMs = 10_000;
/** Limit without a byte in either direction. */
const silenceTimeoutMs = 120_000;

/** The variables are those of AWS's tools. */
function s3Endpoint(location: S3Location): string | undefined {
  return location.endpoint ?? envVar('AWS_ENDPOINT_URL_S3') ?? envVar('AWS_ENDPOINT_URL');
}

/** Credentials come from the SDK's default chain or the profile. */
function openS3Client(location: S3Location): S3Client {
  const endpoint = s3Endpoint(location);
  return new S3Client({
    region: location.region,
    maxAttempts,
    requestHandler: { connectionTimeout: connectionTimeoutMs, socketTimeout: silenceTimeoutMs },
    ...(location.profile === undefined ? {} : { profile: location.profile }),
    // Compatible services support neither the newer checksums nor a host name per bucket.
    ...(endpoint === undefined
      ? {}
      : {
          endpoint,
          forcePathStyle: true,
          requestChecksumCalculation: 'WHEN_REQUIRED' as const,
          responseChecksumValidation: 'WHEN_REQUIRED' as const,
        }),
  });
}

/** Each is held in memory, so that it can be sent again. */
const partsAtOnce = 3;

/** Resumes an unfinished upload of the same key from any process. */
async function sendInParts(of: S3Bucket, key: string, path: string, size: number, options: PutFileOptions): Promise<void> {
  const file = await open(path);
  try {
    const target = { Bucket: of.bucket, Key: key, UploadId: (await findUpload(of, key, options)) ?? (await beginUpload(of, key, options)) };
    const sent = await sentParts(of, target, options);
    const done = new Map<number, CompletedPart>();
    const missing: FilePart[] = [];
    for (const part of planParts(size)) {
      const uploaded = sent.get(part.number);
      if (uploaded?.Size === part.size) {
        done.set(part.number, completed(uploaded));
        options.onBytes?.(part.size);
      } else missing.push(part);
    }
    const failed = new AbortController();
    const signal = options.signal === undefined ? failed.signal : AbortSignal.any([failed.signal, options.signal]);
    const work = async (): Promise<void> => {
      for (let part = missing.shift(); part !== undefined; part = missing.shift()) {
        signal.throwIfAborted();
        const command = new UploadPartCommand({ ...target, PartNumber: part.number, Body: await readPart(file, part, path) });
        done.set(part.number, completed({ ...(await of.client.send(command, { abortSignal: signal })), PartNumber: part.number }));
        options.onBytes?.(part.size);
      }
    };
    const workers = Array.from({ length: partsAtOnce }, () =>
      work().catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    );
    // All workers must settle before the file is closed.
    await Promise.allSettled(workers);
    if (failed.signal.aborted) throw failed.signal.reason;
    const Parts = [...done.values()].toSorted((a, b) => (a.PartNumber ?? 0) - (b.PartNumber ?? 0));
    await of.client.send(new CompleteMultipartUploadCommand({ ...target, MultipartUpload: { Parts } }), callOptions(options.signal));
  } finally {
    await file.close();
  }
}

/** The latest upload of exactly this key. */
async function findUpload({ client, bucket }: S3Bucket, key: string, { signal }: PutFileOptions): Promise<string | undefined> {
  const found: { readonly id: string; readonly at: number }[] = [];
  for await (const { Key, UploadId, Initiated } of listUploads(client, bucket, key, callOptions(signal))) {
    if (Key === key && UploadId !== undefined) found.push({ id: UploadId, at: Initiated?.getTime() ?? 0 });
  }
  return found.toSorted((a, b) => b.at - a.at)[0]?.id;
}

async function beginUpload({ client, bucket }: S3Bucket, key: string, { signal }: PutFileOptions): Promise<string> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: key }), callOptions(signal));
  if (UploadId === undefined) throw new SvcError('SVC_BUCKET', `Bucket '${bucket}' began an upload without naming it.`);
  return UploadId;
}

async function sentParts({ client }: S3Bucket, upload: UploadId, { signal }: PutFileOptions): Promise<ReadonlyMap<number, Part>> {
  const parts = new Map<number, Part>();
  for await (const part of listParts(client, upload, callOptions(signal))) {
    if (part.PartNumber !== undefined) parts.set(part.PartNumber, part);
  }
  return parts;
}

/** For the completion request; with the checksum if the upload has one. */
function completed({ PartNumber, ETag, ChecksumCRC32, ChecksumCRC64NVME }: Part): CompletedPart {
  return {
    PartNumber,
    ETag,
    ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }),
    ...(ChecksumCRC64NVME === undefined ? {} : { ChecksumCRC64NVME }),
  };
}

async function readPart(file: FileHandle, { start, size }: FilePart, path: string): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(buffer, filled, size - filled, start + filled);
    if (bytesRead === 0) throw new SvcError('SVC_BUCKET', `${path} became shorter while it was being sent.`);
    filled += bytesRead;
  }
  return buffer;
}
