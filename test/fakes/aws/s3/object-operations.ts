import * as sdk from '@aws-sdk/client-s3';
import { ApiError } from '../wire/api-error.ts';
import type { ObjectHeaders, ObjectRecord } from './buckets.ts';
import type { Checksum } from './checksums.ts';
import { emptyReply, xmlReply, type S3Exchange, type S3Reply } from './exchange.ts';
import { StoredBody } from './stored-body.ts';

const keptHeaders = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'content-type', 'expires'];
const mostBytes = 5 * 1_024 ** 3;

/** Headers that are stored and returned with the object. `aws-chunked` is a transfer encoding and not stored. */
export function objectHeaders(exchange: S3Exchange): ObjectHeaders {
  const headers: Record<string, string> = { 'content-type': 'binary/octet-stream', ...exchange.headersLike('x-amz-meta-') };
  for (const name of keptHeaders) {
    const value = exchange.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const encoding = (headers['content-encoding'] ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== 'aws-chunked');
  if (encoding.length > 0) headers['content-encoding'] = encoding.join(',');
  else delete headers['content-encoding'];
  return headers;
}

/** Response headers with a checksum. */
export function checksumHeaders(checksum: Checksum | undefined): Readonly<Record<string, string>> {
  return checksum === undefined ? {} : { [`x-amz-checksum-${checksum.name}`]: checksum.value, 'x-amz-checksum-type': checksum.type };
}

/** Refuses a write whose precondition on the existing object fails. */
export function checkWriteConditions(exchange: S3Exchange, existing: ObjectRecord | undefined): void {
  const failed = new ApiError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
  if (exchange.header('if-none-match') === '*' && existing !== undefined) throw failed;
  const match = exchange.header('if-match');
  if (match === undefined) return;
  if (existing === undefined) throw noSuchKey(exchange.key);
  if (match !== '*' && match.replaceAll('"', '') !== existing.etag) throw failed;
}

function noSuchKey(key: string): ApiError {
  return new ApiError('NoSuchKey', 'The specified key does not exist.', 404, { Key: key });
}

/** Stores the object once the whole body has arrived, or not at all. */
export async function putObject(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const { key } = exchange;
  if (Buffer.byteLength(key) > 1_024) throw new ApiError('KeyTooLongError', 'Your key is too long', 400);
  if (Number(exchange.header('x-amz-decoded-content-length') ?? exchange.header('content-length') ?? 0) > mostBytes) {
    throw new ApiError('EntityTooLarge', 'Your proposed upload exceeds the maximum allowed size', 400);
  }
  checkWriteConditions(exchange, bucket.objects.get(key));
  const { body, md5, checksum } = await exchange.receive();
  checkWriteConditions(exchange, bucket.objects.get(key));
  bucket.objects.set({ key, body, etag: md5, checksum, headers: objectHeaders(exchange), modifiedAt: exchange.now });
  return emptyReply(200, { etag: `"${md5}"`, ...checksumHeaders(checksum) });
}

/** Copies within the account; the bytes are copied. */
export async function copyObject(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const [path = ''] = (exchange.header('x-amz-copy-source') ?? '').split('?versionId=', 1);
  const [, from = '', fromKey = ''] = /^\/?([^/]+)\/(.+)/s.exec(decodeURIComponent(path)) ?? [];
  const source = exchange.store.get(from).objects.get(fromKey);
  if (source === undefined) throw noSuchKey(fromKey);
  const bytes = await source.body.bytes();
  const headers = exchange.header('x-amz-metadata-directive') === 'REPLACE' ? objectHeaders(exchange) : source.headers;
  const body = new StoredBody([{ size: bytes.length, bytes }]);
  bucket.objects.set({ ...source, key: exchange.key, body, headers, modifiedAt: exchange.now });
  const output: sdk.CopyObjectResult = { ETag: `"${source.etag}"`, LastModified: new Date(exchange.now) };
  return xmlReply('CopyObjectResult', sdk.CopyObjectResult$, output);
}

function existingObject(exchange: S3Exchange): ObjectRecord {
  const object = exchange.store.get(exchange.bucket).objects.get(exchange.key);
  if (object === undefined) throw noSuchKey(exchange.key);
  return object;
}

/** Returns a status other than 200 when a precondition of the request fails. */
function conditionStatus(exchange: S3Exchange, object: ObjectRecord): 200 | 304 | 412 {
  const names = (header: string): readonly string[] | undefined =>
    exchange
      .header(header)
      ?.split(',')
      .map((one) => one.trim().replaceAll('"', ''));
  const match = names('if-match');
  if (match !== undefined && !match.includes('*') && !match.includes(object.etag)) return 412;
  const none = names('if-none-match');
  return none !== undefined && (none.includes('*') || none.includes(object.etag)) ? 304 : 200;
}

/**
 * Returns the first byte and the one after the last; undefined for the whole object; throws when the range is not
 * satisfiable.
 */
function rangeOf(header: string | undefined, size: number): readonly [number, number] | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (match === null || (first === '' && last === '')) return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  if (start < end) return [start, end];
  throw new ApiError('InvalidRange', 'The requested range is not satisfiable', 416, { ActualObjectSize: String(size) });
}

function describe(exchange: S3Exchange, object: ObjectRecord, range: readonly [number, number] | undefined): Record<string, string> {
  const overrides = [...exchange.target.query].flatMap(([name, value]) =>
    name.startsWith('response-') ? [[name.slice('response-'.length), value]] : [],
  );
  const wantsChecksum = exchange.header('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED' && range === undefined;
  return {
    ...object.headers,
    ...Object.fromEntries(overrides),
    etag: `"${object.etag}"`,
    'last-modified': new Date(object.modifiedAt).toUTCString(),
    'accept-ranges': 'bytes',
    'content-length': String(range === undefined ? object.body.size : range[1] - range[0]),
    ...(range === undefined ? {} : { 'content-range': `bytes ${range[0]}-${range[1] - 1}/${object.body.size}` }),
    ...(wantsChecksum ? checksumHeaders(object.checksum) : {}),
  };
}

/** The object or a range of it. */
export function getObject(exchange: S3Exchange): S3Reply {
  const object = existingObject(exchange);
  const condition = conditionStatus(exchange, object);
  if (condition === 304) return emptyReply(304, { etag: `"${object.etag}"` });
  if (condition === 412) throw new ApiError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
  const range = rangeOf(exchange.header('range'), object.body.size);
  const headers = describe(exchange, object, range);
  return { status: range === undefined ? 200 : 206, headers, body: object.body.read(...(range ?? [])) };
}

/** The headers of GET, without the bytes. */
export function headObject(exchange: S3Exchange): S3Reply {
  const object = existingObject(exchange);
  const condition = conditionStatus(exchange, object);
  if (condition !== 200) return emptyReply(condition, { etag: `"${object.etag}"` });
  const range = rangeOf(exchange.header('range'), object.body.size);
  return emptyReply(range === undefined ? 200 : 206, describe(exchange, object, range));
}

/** Succeeds without such an object, too. */
export function deleteObject(exchange: S3Exchange): S3Reply {
  exchange.store.get(exchange.bucket).objects.delete(exchange.key);
  return emptyReply(204);
}
