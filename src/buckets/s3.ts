import { readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { SvcError } from '../shared/errors.ts';
import { isObject } from '../shared/is-object.ts';
import { checkKey } from './check-key.ts';
import type { BucketCallOptions, BucketSettings, ObjectStore, PutFileOptions, StoredObject } from './object-store.ts';
import { smallestPart } from './part-plan.ts';
import { callOptions, createS3Bucket, deleteS3Bucket, type S3Bucket } from './s3-bucket.ts';
import { openS3Client, s3Endpoint, type S3Place } from './s3-client.ts';
import { guardS3, isMissing, s3Code } from './s3-errors.ts';
import { sendInParts } from './s3-parts.ts';

/** A bucket of Amazon's S3 or of a service with its protocol. Makes no call. */
export function openS3Store(place: S3Place, bucket: string): ObjectStore {
  return new S3Store({ client: openS3Client(place), bucket, region: place.region, isAmazon: s3Endpoint(place) === undefined });
}

/** In which region a bucket is that somebody made; a signed address is good for that one only. */
export async function findS3Region(place: S3Place, bucket: string, { signal }: BucketCallOptions = {}): Promise<string> {
  const client = openS3Client(place);
  try {
    return await guardS3(`find the bucket s3://${bucket}`, async () => {
      try {
        return (await client.send(new HeadBucketCommand({ Bucket: bucket }), callOptions(signal))).BucketRegion ?? place.region;
      } catch (error) {
        // The answer to a question in the wrong region names the right one.
        const region = regionIn(error);
        if (region !== undefined) return region;
        throw error;
      }
    });
  } finally {
    client.destroy();
  }
}

/** From the redirect that answers a question in the wrong region. */
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
    // As bytes, of which the SDK knows the length even when there are none.
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
        // Somebody else may have completed the same upload at the same moment.
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

  /** Keys come encoded: XML cannot hold every character that a key can. */
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
