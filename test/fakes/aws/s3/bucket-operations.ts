import * as sdk from '@aws-sdk/client-s3';
import { ApiError } from '../wire/api-error.ts';
import type { WireValue } from '../wire/schema.ts';
import { itemsOf, textOf } from '../wire/fields.ts';
import { ObjectTable, type BucketRecord } from './buckets.ts';
import { emptyReply, xmlReply, type S3Exchange, type S3Reply } from './exchange.ts';

const nameForm = /^(?!xn--|sthree-)(?!\d+\.\d+\.\d+\.\d+$)[a-z\d](?:[a-z\d]|[.-](?![.-])){1,61}[a-z\d]$/;

function tagsOf(items: readonly WireValue[]): Map<string, string> {
  return new Map(items.map((item) => [textOf(item, 'Key') ?? '', textOf(item, 'Value') ?? '']));
}

/** All buckets of all regions. */
export function listBuckets(exchange: S3Exchange): S3Reply {
  const prefix = exchange.parameter('prefix') ?? '';
  const all = [...exchange.store.buckets.values()]
    .filter(({ name }) => name.startsWith(prefix))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const size = Math.min(Number(exchange.parameter('max-buckets') ?? 10_000), exchange.pageLimit);
  const start = Number(exchange.parameter('continuation-token') ?? 0);
  const shown = all
    .slice(start, start + size)
    .map(({ name, createdAt, region }) => ({ Name: name, CreationDate: new Date(createdAt), BucketRegion: region }));
  const output: sdk.ListBucketsOutput = {
    Buckets: shown,
    Owner: { ID: exchange.verified.key.account },
    ...(start + size < all.length ? { ContinuationToken: String(start + size) } : {}),
    ...(prefix === '' ? {} : { Prefix: prefix }),
  };
  return xmlReply('ListAllMyBucketsResult', sdk.ListBucketsOutput$, output);
}

/**
 * Returns the bucket's region, from the constraint and the called region. No constraint means us-east-1, whose endpoint
 * may create buckets in any region.
 */
function regionFor(constraint: string | undefined, asked: string): string {
  const home = 'us-east-1';
  if (constraint === home)
    throw new ApiError('InvalidLocationConstraint', 'The specified location-constraint is not valid', 400, {
      LocationConstraint: constraint,
    });
  const requested = constraint ?? home;
  if (asked === home || requested === asked) return requested;
  const name = constraint ?? 'unspecified';
  throw new ApiError(
    'IllegalLocationConstraintException',
    `The ${name} location constraint is incompatible for the region specific endpoint this request was sent to.`,
    400,
  );
}

/** Names are unique among all accounts. Creating an own bucket again is an error, except in us-east-1. */
export async function createBucket(exchange: S3Exchange): Promise<S3Reply> {
  const name = exchange.bucket;
  const configuration = await exchange.receiveXml(sdk.CreateBucketConfiguration$);
  if (!nameForm.test(name)) throw new ApiError('InvalidBucketName', 'The specified bucket is not valid.', 400, { BucketName: name });
  const region = regionFor(textOf(configuration, 'LocationConstraint'), exchange.verified.scope.region);
  if (exchange.store.namesOfOtherAccounts.has(name)) {
    throw new ApiError(
      'BucketAlreadyExists',
      'The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.',
      409,
    );
  }
  const existing = exchange.store.buckets.get(name);
  if (existing !== undefined && !(existing.region === 'us-east-1' && region === 'us-east-1')) {
    throw new ApiError(
      'BucketAlreadyOwnedByYou',
      'Your previous request to create the named bucket succeeded and you already own it.',
      409,
      { BucketName: name },
    );
  }
  if (existing === undefined) {
    const tags = tagsOf(itemsOf(configuration, 'Tags'));
    const bucket: BucketRecord = {
      name,
      region,
      createdAt: exchange.now,
      tags,
      publicAccess: undefined,
      lifecycle: undefined,
      objects: new ObjectTable(),
      uploads: new Map(),
    };
    exchange.store.buckets.set(name, bucket);
  }
  return emptyReply(200, { location: `/${name}` });
}

/** Returns the bucket's region. */
export function headBucket(exchange: S3Exchange): S3Reply {
  const { region } = exchange.store.get(exchange.bucket);
  return emptyReply(200, { 'x-amz-bucket-region': region });
}

/** us-east-1 is encoded as an empty constraint. */
export function getLocation(exchange: S3Exchange): S3Reply {
  const { region } = exchange.store.get(exchange.bucket);
  const text = region === 'us-east-1' ? '' : region;
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${text}</LocationConstraint>`;
  return { status: 200, headers: { 'content-type': 'application/xml' }, body };
}

/** Refused while the bucket has objects. Unfinished uploads do not count; they end with the bucket. */
export async function deleteBucket(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  if (bucket.objects.size > 0)
    throw new ApiError('BucketNotEmpty', 'The bucket you tried to delete is not empty', 409, { BucketName: bucket.name });
  exchange.store.buckets.delete(bucket.name);
  const parts = [...bucket.uploads.values()].flatMap((upload) => [...upload.parts.values()]);
  await Promise.all(parts.map(({ body }) => body.dispose()));
  return emptyReply(204);
}

/** Replaces all tags. */
export async function putTagging(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const tagging = await exchange.receiveXml(sdk.Tagging$);
  bucket.tags.clear();
  for (const [key, value] of tagsOf(itemsOf(tagging, 'TagSet'))) bucket.tags.set(key, value);
  return emptyReply(204);
}

/** An error when there are no tags. */
export function getTagging(exchange: S3Exchange): S3Reply {
  const { tags, name } = exchange.store.get(exchange.bucket);
  if (tags.size === 0) throw new ApiError('NoSuchTagSet', 'The TagSet does not exist', 404, { BucketName: name });
  const output: sdk.GetBucketTaggingOutput = { TagSet: [...tags].map(([Key, Value]) => ({ Key, Value })) };
  return xmlReply('Tagging', sdk.GetBucketTaggingOutput$, output);
}

/** Succeeds without tags, too. */
export function deleteTagging(exchange: S3Exchange): S3Reply {
  exchange.store.get(exchange.bucket).tags.clear();
  return emptyReply(204);
}

/** Stored and returned only. */
export async function putPublicAccess(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  bucket.publicAccess = await exchange.receiveXml(sdk.PublicAccessBlockConfiguration$);
  return emptyReply(200);
}

/** As it was put; a new bucket blocks all public access, as in S3 since April 2023. */
export function getPublicAccess(exchange: S3Exchange): S3Reply {
  const { publicAccess } = exchange.store.get(exchange.bucket);
  const blocked = { BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true, RestrictPublicBuckets: true };
  return xmlReply('PublicAccessBlockConfiguration', sdk.PublicAccessBlockConfiguration$, publicAccess ?? blocked);
}

/** Stored and returned only; no object expires by it. */
export async function putLifecycle(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const lifecycle = await exchange.receiveXml(sdk.BucketLifecycleConfiguration$);
  if (lifecycle === undefined) throw new ApiError('MissingRequestBodyError', 'Request Body is empty', 400);
  bucket.lifecycle = lifecycle;
  return emptyReply(200);
}

/** An error when the bucket has none. */
export function getLifecycle(exchange: S3Exchange): S3Reply {
  const { lifecycle, name } = exchange.store.get(exchange.bucket);
  if (lifecycle === undefined)
    throw new ApiError('NoSuchLifecycleConfiguration', 'The lifecycle configuration does not exist', 404, { BucketName: name });
  return xmlReply('LifecycleConfiguration', sdk.BucketLifecycleConfiguration$, lifecycle);
}
