import * as sdk from '@aws-sdk/client-s3';
import { encodeRfc3986 } from '../sigv4/signature.ts';
import { ApiError } from '../wire/api-error.ts';
import { fieldOf, itemsOf, textOf } from '../wire/fields.ts';
import type { ObjectRecord } from './buckets.ts';
import { xmlReply, type S3Exchange, type S3Reply } from './exchange.ts';

const mostKeys = 1_000;

/** A line of a listing: an object, or a common prefix. */
type Entry = { readonly text: string; readonly object: ObjectRecord | undefined };

function entries(objects: readonly ObjectRecord[], prefix: string, delimiter: string): readonly Entry[] {
  const found: Entry[] = [];
  for (const object of objects) {
    if (!object.key.startsWith(prefix)) continue;
    const end = delimiter === '' ? -1 : object.key.indexOf(delimiter, prefix.length);
    if (end === -1) found.push({ text: object.key, object });
    else {
      const folder = object.key.slice(0, end + delimiter.length);
      if (found.at(-1)?.text !== folder) found.push({ text: folder, object: undefined });
    }
  }
  return found;
}

function isAfter(text: string, other: string): boolean {
  return Buffer.compare(Buffer.from(text), Buffer.from(other)) > 0;
}

/**
 * Lists keys in byte order, page by page. A token holds the last returned key, so deletions in between shift nothing.
 */
export function listObjects(exchange: S3Exchange): S3Reply {
  const bucket = exchange.store.get(exchange.bucket);
  const prefix = exchange.parameter('prefix') ?? '';
  const delimiter = exchange.parameter('delimiter') ?? '';
  const maxKeys = Number(exchange.parameter('max-keys') ?? mostKeys);
  if (!Number.isInteger(maxKeys) || maxKeys < 0)
    throw new ApiError('InvalidArgument', 'Provided max-keys not an integer or within integer range', 400);
  const token = exchange.parameter('continuation-token');
  const startAfter = exchange.parameter('start-after');
  const after = token === undefined ? startAfter : Buffer.from(token, 'base64url').toString('utf8');
  const encode =
    exchange.parameter('encoding-type') === 'url' ? (text: string) => text.split('/').map(encodeRfc3986).join('/') : (text: string) => text;
  const all = entries(bucket.objects.sorted(), prefix, delimiter).filter(({ text }) => after === undefined || isAfter(text, after));
  const size = Math.min(maxKeys, mostKeys, exchange.pageLimit);
  const shown = all.slice(0, size);
  const truncated = all.length > shown.length && size > 0;
  const output: sdk.ListObjectsV2Output = {
    Name: bucket.name,
    Prefix: encode(prefix),
    ...(delimiter === '' ? {} : { Delimiter: encode(delimiter) }),
    MaxKeys: maxKeys,
    KeyCount: shown.length,
    IsTruncated: truncated,
    ...(token === undefined ? {} : { ContinuationToken: token }),
    ...(startAfter === undefined ? {} : { StartAfter: encode(startAfter) }),
    ...(truncated ? { NextContinuationToken: Buffer.from(shown.at(-1)?.text ?? '').toString('base64url') } : {}),
    ...(exchange.parameter('encoding-type') === 'url' ? { EncodingType: 'url' } : {}),
    Contents: shown.flatMap(({ object }) => (object === undefined ? [] : [shownObject(object, encode)])),
    CommonPrefixes: shown.flatMap(({ text, object }) => (object === undefined ? [{ Prefix: encode(text) }] : [])),
  };
  return xmlReply('ListBucketResult', sdk.ListObjectsV2Output$, output);
}

function shownObject(object: ObjectRecord, encode: (text: string) => string): sdk._Object {
  return {
    Key: encode(object.key),
    Size: object.body.size,
    ETag: `"${object.etag}"`,
    LastModified: new Date(object.modifiedAt),
    StorageClass: 'STANDARD',
  };
}

/** At most a thousand at once; keys without an object count as deleted. */
export async function deleteObjects(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const guarded = exchange.header('content-md5') !== undefined || Object.keys(exchange.headersLike('x-amz-checksum-')).length > 0;
  if (!guarded && exchange.header('x-amz-trailer') === undefined) {
    throw new ApiError('InvalidRequest', 'Missing required header for this request: Content-MD5 OR x-amz-checksum-*', 400);
  }
  const request = await exchange.receiveXml(sdk.Delete$);
  const keys = itemsOf(request, 'Objects').map((item) => textOf(item, 'Key') ?? '');
  if (keys.length === 0 || keys.length > mostKeys) {
    throw new ApiError('MalformedXML', 'The XML you provided was not well-formed or did not validate against our published schema', 400);
  }
  for (const key of keys) bucket.objects.delete(key);
  const output: sdk.DeleteObjectsOutput = fieldOf(request, 'Quiet') === true ? {} : { Deleted: keys.map((Key) => ({ Key })) };
  return xmlReply('DeleteResult', sdk.DeleteObjectsOutput$, output);
}
