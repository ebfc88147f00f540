import {
  AbortMultipartUploadCommand,
  BucketLocationConstraint,
  CreateBucketCommand,
  type CreateBucketConfiguration,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  type MultipartUpload,
  type Part,
  PutBucketLifecycleConfigurationCommand,
  PutBucketTaggingCommand,
  PutPublicAccessBlockCommand,
  type S3Client,
  waitUntilBucketExists,
} from '@aws-sdk/client-s3';
import { SvcError } from '../shared/errors.ts';
import type { BucketSettings, StoredObject } from './object-store.ts';
import { isMissing, isUnsupported, s3Code, s3Status } from './s3-errors.ts';

/** A bucket, as input of the calls below. */
export interface S3Bucket {
  readonly client: S3Client;
  readonly bucket: string;
  readonly region: string;
  /** Other services than Amazon's may lack bucket-level parts of the protocol. */
  readonly isAmazon: boolean;
}

/** Amazon's first region must have no location constraint. */
const namelessRegion = 'us-east-1';
const visibleWithinSeconds = 60;
const unfinishedDays = 1;
/** Objects per delete call, by S3's documentation. */
const deletedAtOnce = 1_000;
const emptyAttempts = 3;

/** Creates a private bucket, or updates the settings of an existing one of the same owner. */
export async function createS3Bucket(of: S3Bucket, settings: BucketSettings, abortSignal?: AbortSignal): Promise<void> {
  const { client, bucket: Bucket } = of;
  const call = callOptions(abortSignal);
  try {
    await client.send(new CreateBucketCommand({ Bucket, ...placement(of) }), call);
  } catch (error) {
    if (s3Code(error) === 'BucketAlreadyExists') {
      throw new SvcError('SVC_BUCKET', `A bucket named '${Bucket}' exists already and belongs to another account.`, { cause: error });
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

/** Without a region unknown to Amazon: other services know their own. */
function placement({ region, isAmazon }: S3Bucket): { readonly CreateBucketConfiguration?: CreateBucketConfiguration } {
  return isConstraint(region, isAmazon) ? { CreateBucketConfiguration: { LocationConstraint: region } } : {};
}

/** An Amazon region may be newer than the SDK's list. */
function isConstraint(region: string, isAmazon: boolean): region is BucketLocationConstraint {
  return region !== namelessRegion && (isAmazon || Object.values(BucketLocationConstraint).some((one) => one === region));
}

/** Empties and removes a bucket; succeeds when there is none. */
export async function deleteS3Bucket(of: S3Bucket, list: () => AsyncIterable<StoredObject>, abortSignal?: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await abortUploads(of, abortSignal);
      await emptyBucket(of, list(), abortSignal);
      await of.client.send(new DeleteBucketCommand({ Bucket: of.bucket }), callOptions(abortSignal));
      return;
    } catch (error) {
      if (isMissing(error)) return;
      // An object was added meanwhile, or the listing was slightly stale.
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
    // Some services require an older checksum for bulk deletes, and some do not support them.
    if (isAmazon || isMissing(error) || s3Status(error) === 403) throw error;
    for (const Key of keys) await client.send(new DeleteObjectCommand({ Bucket, Key }), callOptions(abortSignal));
  }
}

async function ifKnown({ isAmazon }: Pick<S3Bucket, 'isAmazon'>, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (isAmazon || !isUnsupported(error)) throw error;
  }
}

/** Options in the SDK's form. */
export function callOptions(abortSignal: AbortSignal | undefined): { readonly abortSignal?: AbortSignal } {
  return abortSignal === undefined ? {} : { abortSignal };
}

/** A multipart upload, as S3's calls name it. */
export interface UploadId {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string;
}

type Options = { readonly abortSignal?: AbortSignal };

/** Unfinished uploads whose keys begin with `prefix`. The SDK has no paginator for this call. */
export async function* listUploads(client: S3Client, bucket: string, prefix: string, options: Options): AsyncGenerator<MultipartUpload> {
  let KeyMarker: string | undefined;
  let UploadIdMarker: string | undefined;
  for (;;) {
    const page = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, KeyMarker, UploadIdMarker }), options);
    yield* page.Uploads ?? [];
    if (page.IsTruncated !== true) return;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}

/** The parts that have arrived. The SDK's paginator never ends, because S3 returns a marker after the last page too. */
export async function* listParts(client: S3Client, upload: UploadId, options: Options): AsyncGenerator<Part> {
  let PartNumberMarker: string | undefined;
  for (;;) {
    const page = await client.send(new ListPartsCommand({ ...upload, PartNumberMarker }), options);
    yield* page.Parts ?? [];
    if (page.IsTruncated !== true) return;
    PartNumberMarker = page.NextPartNumberMarker;
  }
}
