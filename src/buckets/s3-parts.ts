import { open, type FileHandle } from 'node:fs/promises';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
  type CompletedPart,
  type Part,
} from '@aws-sdk/client-s3';
import { SvcError } from '../shared/errors.ts';
import type { PutFileOptions } from './object-store.ts';
import { planParts, type FilePart } from './part-plan.ts';
import { callOptions, type S3Bucket } from './s3-bucket.ts';
import { listParts, listUploads, type UploadId } from './s3-uploads.ts';

/** Parts sent at a time; each is in memory as a whole, so that it can be sent again. */
const partsAtOnce = 3;

/** Sends a large file in parts, going on with an upload of the same key that somebody began. */
export async function sendInParts(of: S3Bucket, key: string, path: string, size: number, options: PutFileOptions): Promise<void> {
  const file = await open(path);
  try {
    const target = { Bucket: of.bucket, Key: key, UploadId: (await findUpload(of, key, options)) ?? (await beginUpload(of, key, options)) };
    const sent = await sentParts(of, target, options);
    const done = new Map<number, CompletedPart>();
    const missing: FilePart[] = [];
    for (const part of planParts(size)) {
      const there = sent.get(part.number);
      if (there?.Size === part.size) {
        done.set(part.number, completed(there));
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
    // All of them, as they read from the file that is closed below; then the first failure.
    await Promise.allSettled(workers);
    if (failed.signal.aborted) throw failed.signal.reason;
    const Parts = [...done.values()].toSorted((a, b) => (a.PartNumber ?? 0) - (b.PartNumber ?? 0));
    await of.client.send(new CompleteMultipartUploadCommand({ ...target, MultipartUpload: { Parts } }), callOptions(options.signal));
  } finally {
    await file.close();
  }
}

/** The upload of exactly this key that was begun last. */
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

/** What completing an upload has to say of a part: with its checksum, when the upload was begun with one. */
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
