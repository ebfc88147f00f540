import { createHash } from 'node:crypto';
import * as sdk from '@aws-sdk/client-s3';
import { ApiError } from '../wire/api-error.ts';
import { fieldOf, itemsOf, textOf } from '../wire/fields.ts';
import type { WireValue } from '../wire/schema.ts';
import type { PartRecord, UploadRecord } from './buckets.ts';
import { compositeChecksum, isChecksumName, startChecksum, type Checksum, type ChecksumName } from './checksums.ts';
import { emptyReply, xmlReply, type S3Exchange, type S3Reply } from './exchange.ts';
import { checksumHeaders, checkWriteConditions, objectHeaders } from './object-operations.ts';
import { StoredBody } from './stored-body.ts';

const leastPartBytes = 5 * 1_024 * 1_024;
const mostParts = 10_000;
const checksumMembers = { crc32: 'ChecksumCRC32', sha1: 'ChecksumSHA1', sha256: 'ChecksumSHA256' } as const;

/** Creates an upload. */
export function createUpload(exchange: S3Exchange): S3Reply {
  const bucket = exchange.store.get(exchange.bucket);
  const upload: UploadRecord = {
    id: exchange.newId(),
    key: exchange.key,
    checksum: requestedChecksum(exchange),
    headers: objectHeaders(exchange),
    startedAt: exchange.now,
    parts: new Map(),
  };
  bucket.uploads.set(upload.id, upload);
  const output: sdk.CreateMultipartUploadOutput = { Bucket: bucket.name, Key: upload.key, UploadId: upload.id };
  const checksumHeaderFields = upload.checksum && {
    'x-amz-checksum-algorithm': upload.checksum.name.toUpperCase(),
    'x-amz-checksum-type': upload.checksum.type,
  };
  return xmlReply('InitiateMultipartUploadResult', sdk.CreateMultipartUploadOutput$, output, checksumHeaderFields ?? {});
}

function requestedChecksum(exchange: S3Exchange): UploadRecord['checksum'] {
  const name = exchange.header('x-amz-checksum-algorithm')?.toLowerCase();
  if (name === undefined) return undefined;
  if (!isChecksumName(name)) throw new ApiError('NotImplemented', `The emulator does not verify ${name}.`, 501);
  const type = exchange.header('x-amz-checksum-type') === 'FULL_OBJECT' ? 'FULL_OBJECT' : 'COMPOSITE';
  if (type === 'FULL_OBJECT' && name !== 'crc32') {
    throw new ApiError('InvalidRequest', `The FULL_OBJECT checksum type cannot be used with the ${name} checksum algorithm.`, 400);
  }
  return { name, type };
}

function uploadOf(exchange: S3Exchange): UploadRecord {
  const id = exchange.parameter('uploadId') ?? '';
  const upload = exchange.store.get(exchange.bucket).uploads.get(id);
  if (upload !== undefined && upload.key === exchange.key) return upload;
  const text = 'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.';
  throw new ApiError('NoSuchUpload', text, 404, { UploadId: id });
}

/** A part may be sent again, and replaces the former one. */
export async function uploadPart(exchange: S3Exchange): Promise<S3Reply> {
  const upload = uploadOf(exchange);
  const number = Number(exchange.parameter('partNumber'));
  if (!Number.isInteger(number) || number < 1 || number > mostParts) {
    throw new ApiError('InvalidArgument', `Part number must be an integer between 1 and ${mostParts}, inclusive`, 400);
  }
  const { body, md5, checksum } = await exchange.receive();
  // A concurrent request may have completed or aborted the upload.
  uploadOf(exchange);
  const requested = upload.checksum;
  // S3 accepts any checksum when the upload announced none; the SDK relies on it.
  if (requested !== undefined && requested.name !== checksum?.name && !(requested.type === 'FULL_OBJECT' && checksum === undefined)) {
    await body.dispose();
    const text = `Checksum Type mismatch occurred, expected checksum Type: ${requested.name}, actual checksum Type: ${checksum?.name ?? 'null'}`;
    throw new ApiError('InvalidRequest', text, 400);
  }
  await upload.parts.get(number)?.body.dispose();
  upload.parts.set(number, { number, body, etag: md5, checksum, modifiedAt: exchange.now });
  const { 'x-amz-checksum-type': _type, ...headers } = checksumHeaders(checksum);
  return emptyReply(200, { etag: `"${md5}"`, ...headers });
}

/** Returns the named parts, each verified against the stored one. */
function chosenParts(upload: UploadRecord, named: readonly WireValue[]): readonly PartRecord[] {
  if (named.length === 0)
    throw new ApiError('MalformedXML', 'The XML you provided was not well-formed or did not validate against our published schema', 400);
  const numbers = named.map((one) => Number(fieldOf(one, 'PartNumber') ?? 0));
  if (numbers.some((number, index) => number <= (numbers[index - 1] ?? 0))) {
    throw new ApiError('InvalidPartOrder', 'The list of parts was not in ascending order. Parts must be ordered by part number.', 400);
  }
  return named.map((one, index) => {
    const part = upload.parts.get(numbers[index] ?? 0);
    if (part === undefined || textOf(one, 'ETag')?.replaceAll('"', '') !== part.etag) {
      throw new ApiError(
        'InvalidPart',
        "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
        400,
      );
    }
    checkPartSum(upload, one, part);
    if (part.body.size < leastPartBytes && index < named.length - 1) {
      throw new ApiError('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size', 400);
    }
    return part;
  });
}

function checkPartSum(upload: UploadRecord, named: WireValue, part: PartRecord): void {
  const { checksum } = upload;
  if (checksum === undefined) return;
  const given = textOf(named, checksumMembers[checksum.name]);
  if (given === undefined && checksum.type === 'COMPOSITE') {
    const text = `The upload was created using a ${checksum.name} checksum. The complete request must include the checksum for each part. It was missing for part ${part.number} in the request.`;
    throw new ApiError('InvalidRequest', text, 400);
  }
  if (given !== undefined && given !== part.checksum?.value) {
    throw new ApiError(
      'InvalidPart',
      "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
      400,
    );
  }
}

async function checksumOf(upload: UploadRecord, parts: readonly PartRecord[], body: StoredBody): Promise<Checksum | undefined> {
  const requested = upload.checksum;
  if (requested === undefined) return undefined;
  if (requested.type === 'COMPOSITE')
    return compositeChecksum(
      requested.name,
      parts.map(({ checksum }) => checksum?.value ?? ''),
    );
  return { ...requested, value: await wholeChecksum(requested.name, body) };
}

async function wholeChecksum(name: ChecksumName, body: StoredBody): Promise<string> {
  const sum = startChecksum(name);
  for await (const chunk of body.read()) sum.update(chunk);
  return sum.value();
}

/** Joins the parts; parts that the request does not name are dropped. */
export async function completeUpload(exchange: S3Exchange): Promise<S3Reply> {
  const bucket = exchange.store.get(exchange.bucket);
  const upload = uploadOf(exchange);
  const request = await exchange.receiveXml(sdk.CompletedMultipartUpload$);
  const parts = chosenParts(upload, itemsOf(request, 'Parts'));
  checkWriteConditions(exchange, bucket.objects.get(upload.key));
  const body = StoredBody.join(parts.map((part) => part.body));
  const checksum = await checksumOf(upload, parts, body);
  const hash = createHash('md5');
  for (const part of parts) hash.update(Buffer.from(part.etag, 'hex'));
  const etag = `${hash.digest('hex')}-${parts.length}`;
  bucket.uploads.delete(upload.id);
  await Promise.all([...upload.parts.values()].filter((part) => !parts.includes(part)).map((part) => part.body.dispose()));
  bucket.objects.set({ key: upload.key, body, etag, checksum, headers: upload.headers, modifiedAt: exchange.now });
  const output: sdk.CompleteMultipartUploadOutput = {
    Location: `https://${bucket.name}.s3.${bucket.region}.amazonaws.com/${upload.key}`,
    Bucket: bucket.name,
    Key: upload.key,
    ETag: `"${etag}"`,
    ...(checksum === undefined ? {} : { [checksumMembers[checksum.name]]: checksum.value, ChecksumType: checksum.type }),
  };
  return xmlReply('CompleteMultipartUploadResult', sdk.CompleteMultipartUploadOutput$, output);
}

/** Drops all parts. */
export async function abortUpload(exchange: S3Exchange): Promise<S3Reply> {
  const upload = uploadOf(exchange);
  exchange.store.get(exchange.bucket).uploads.delete(upload.id);
  await Promise.all([...upload.parts.values()].map((part) => part.body.dispose()));
  return emptyReply(204);
}

/** Lists the stored parts, in order, page by page. */
export function listParts(exchange: S3Exchange): S3Reply {
  const upload = uploadOf(exchange);
  const after = Number(exchange.parameter('part-number-marker') ?? 0);
  const maxParts = Math.min(Number(exchange.parameter('max-parts') ?? 1_000), 1_000);
  const all = [...upload.parts.values()].filter(({ number }) => number > after).toSorted((a, b) => a.number - b.number);
  const shown = all.slice(0, Math.min(maxParts, exchange.pageLimit));
  const output: sdk.ListPartsOutput = {
    Bucket: exchange.bucket,
    Key: upload.key,
    UploadId: upload.id,
    PartNumberMarker: String(after),
    NextPartNumberMarker: String(shown.at(-1)?.number ?? 0),
    MaxParts: maxParts,
    IsTruncated: shown.length < all.length,
    Parts: shown.map((part) => ({
      PartNumber: part.number,
      ETag: `"${part.etag}"`,
      Size: part.body.size,
      LastModified: new Date(part.modifiedAt),
      ...(part.checksum === undefined ? {} : { [checksumMembers[part.checksum.name]]: part.checksum.value }),
    })),
    StorageClass: 'STANDARD',
  };
  return xmlReply('ListPartsResult', sdk.ListPartsOutput$, output);
}

/** Lists unfinished uploads, by key and age. */
export function listUploads(exchange: S3Exchange): S3Reply {
  const bucket = exchange.store.get(exchange.bucket);
  const prefix = exchange.parameter('prefix') ?? '';
  const marker = exchange.parameter('upload-id-marker');
  const all = [...bucket.uploads.values()]
    .filter(({ key }) => key.startsWith(prefix))
    .toSorted((a, b) => (a.key === b.key ? a.startedAt - b.startedAt : a.key < b.key ? -1 : 1));
  const start = marker === undefined ? 0 : all.findIndex(({ id }) => id === marker) + 1;
  const maxUploads = Math.min(Number(exchange.parameter('max-uploads') ?? 1_000), 1_000);
  const shown = all.slice(start, start + Math.min(maxUploads, exchange.pageLimit));
  const last = shown.at(-1);
  const more = start + shown.length < all.length;
  const output: sdk.ListMultipartUploadsOutput = {
    Bucket: bucket.name,
    Prefix: prefix,
    MaxUploads: maxUploads,
    IsTruncated: more,
    ...(more && last !== undefined ? { NextKeyMarker: last.key, NextUploadIdMarker: last.id } : {}),
    Uploads: shown.map((upload) => ({
      Key: upload.key,
      UploadId: upload.id,
      Initiated: new Date(upload.startedAt),
      StorageClass: 'STANDARD',
    })),
  };
  return xmlReply('ListMultipartUploadsResult', sdk.ListMultipartUploadsOutput$, output);
}
