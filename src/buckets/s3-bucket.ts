import {
  AbortMultipartUploadCommand,
  BucketLocationConstraint,
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  PutBucketLifecycleConfigurationCommand,
  PutBucketTaggingCommand,
  PutPublicAccessBlockCommand,
  waitUntilBucketExists,
  type CreateBucketConfiguration,
  type S3Client,
} from '@aws-sdk/client-s3';
import { SvcError } from '../shared/errors.ts';
import type { BucketSettings, StoredObject } from './object-store.ts';
import { isMissing, isUnknownThere, s3Code, s3Status } from './s3-errors.ts';
import { listUploads } from './s3-uploads.ts';

/** One bucket as the calls below take it. */
export interface S3Bucket {
  readonly client: S3Client;
  readonly bucket: string;
  readonly region: string;
  /** Amazon's own; other services may lack parts of the protocol that are not about the objects themselves. */
  readonly isAmazon: boolean;
}

/** Amazon's first region has no name where the others need one. */
const namelessRegion = 'us-east-1';
/** How long a new bucket may stay invisible, s. */
const visibleWithinSeconds = 60;
/** Parts of uploads that nobody finished are removed after so many days. */
const unfinishedDays = 1;
/** Objects that one call can delete, by S3's documentation. */
const deletedAtOnce = 1_000;
const emptyAttempts = 3;

/** Makes a private bucket, or makes one of ours equal. */
export async function createS3Bucket(of: S3Bucket, settings: BucketSettings, abortSignal?: AbortSignal): Promise<void> {
  const { client, bucket: Bucket } = of;
  const call = callOptions(abortSignal);
  try {
    await client.send(new CreateBucketCommand({ Bucket, ...placement(of) }), call);
  } catch (error) {
    if (s3Code(error) === 'BucketAlreadyExists') {
      throw new SvcError('SVC_BUCKET', `A bucket named '${Bucket}' exists already and belongs to somebody else.`, { cause: error });
    }
    if (s3Code(error) !== 'BucketAlreadyOwnedByYou') throw error;
  }
  await waitUntilBucketExists({ client, maxWaitTime: visibleWithinSeconds, minDelay: 1, ...call }, { Bucket });
  await ifKnown(of, () =>
    client.send(
      new PutPublicAccessBlockCommand({
        Bucket,
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          IgnorePublicAcls: true,
          BlockPublicPolicy: true,
          RestrictPublicBuckets: true,
        },
      }),
      call,
    ),
  );
  const TagSet = Object.entries(settings.tags).map(([Key, Value]) => ({ Key, Value }));
  await ifKnown(of, () => client.send(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet } }), call));
  const rule = {
    ID: 'svc-expire',
    Status: 'Enabled',
    Filter: { Prefix: '' },
    Expiration: { Days: settings.expireDays },
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: unfinishedDays },
  } as const;
  await ifKnown(of, () =>
    client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules: [rule] } }), call),
  );
}

/** Where the bucket is to be, as S3 wants it said. Regions of other services that Amazon has not are theirs to know. */
function placement({ region, isAmazon }: S3Bucket): { readonly CreateBucketConfiguration?: CreateBucketConfiguration } {
  return isConstraint(region, isAmazon) ? { CreateBucketConfiguration: { LocationConstraint: region } } : {};
}

/** A region of Amazon's may be newer than the SDK's list. */
function isConstraint(region: string, isAmazon: boolean): region is BucketLocationConstraint {
  return region !== namelessRegion && (isAmazon || Object.values(BucketLocationConstraint).some((one) => one === region));
}

/** Empties and removes a bucket; success when there is none. */
export async function deleteS3Bucket(of: S3Bucket, list: () => AsyncIterable<StoredObject>, abortSignal?: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await abortUploads(of, abortSignal);
      await emptyBucket(of, list(), abortSignal);
      await of.client.send(new DeleteBucketCommand({ Bucket: of.bucket }), callOptions(abortSignal));
      return;
    } catch (error) {
      if (isMissing(error)) return;
      // Something came in between, or a listing was a little late.
      if (s3Code(error) !== 'BucketNotEmpty' || attempt >= emptyAttempts) throw error;
    }
  }
}

async function abortUploads({ client, bucket: Bucket, ...of }: S3Bucket, abortSignal: AbortSignal | undefined): Promise<void> {
  await ifKnown(of, async () => {
    for await (const { Key, UploadId } of listUploads(client, Bucket, '', callOptions(abortSignal))) {
      try {
        await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), callOptions(abortSignal));
      } catch (error) {
        if (s3Code(error) !== 'NoSuchUpload') throw error;
      }
    }
  });
}

async function emptyBucket(of: S3Bucket, objects: AsyncIterable<StoredObject>, abortSignal: AbortSignal | undefined): Promise<void> {
  let group: string[] = [];
  for await (const { key } of objects) {
    if (group.push(key) < deletedAtOnce) continue;
    await deleteObjects(of, group, abortSignal);
    group = [];
  }
  if (group.length > 0) await deleteObjects(of, group, abortSignal);
}

async function deleteObjects(
  { client, bucket: Bucket, isAmazon }: S3Bucket,
  keys: readonly string[],
  abortSignal?: AbortSignal,
): Promise<void> {
  try {
    const Objects = keys.map((Key) => ({ Key }));
    const { Errors = [] } = await client.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
      callOptions(abortSignal),
    );
    const [first] = Errors;
    if (first !== undefined) throw Object.assign(new Error(first.Message ?? 'not deleted'), { name: first.Code ?? 'Error' });
  } catch (error) {
    // Some services insist on a checksum of an older kind for deleting many at once, or do not know it at all.
    if (isAmazon || isMissing(error) || s3Status(error) === 403) throw error;
    for (const Key of keys) await client.send(new DeleteObjectCommand({ Bucket, Key }), callOptions(abortSignal));
  }
}

async function ifKnown({ isAmazon }: Pick<S3Bucket, 'isAmazon'>, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (isAmazon || !isUnknownThere(error)) throw error;
  }
}

/** As the SDK takes it. */
export function callOptions(abortSignal: AbortSignal | undefined): { readonly abortSignal?: AbortSignal } {
  return abortSignal === undefined ? {} : { abortSignal };
}
