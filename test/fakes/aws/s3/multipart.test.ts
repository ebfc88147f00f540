import { randomBytes } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
  type CompletedPart,
  type S3Client,
} from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { outcomeOf, withFakeBucket } from '../testing.ts';

const target = { Bucket: 'of-a-test', Key: 'k' };
const mib = 1_024 * 1_024;

async function begin(s3: S3Client, more: object = {}): Promise<string> {
  return (await s3.send(new CreateMultipartUploadCommand({ ...target, ...more }))).UploadId ?? '';
}

async function part(s3: S3Client, UploadId: string, PartNumber: number, Body: Buffer): Promise<CompletedPart> {
  const { ETag, ChecksumCRC32 } = await s3.send(new UploadPartCommand({ ...target, UploadId, PartNumber, Body }));
  return { PartNumber, ETag, ChecksumCRC32 };
}

function complete(s3: S3Client, UploadId: string, Parts: CompletedPart[]): Promise<string> {
  return outcomeOf(s3.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } })));
}

test('parts are joined in order, each in its latest version', async () => {
  await withFakeBucket(target.Bucket, async (aws, s3) => {
    const id = await begin(s3);
    const bytes = [randomBytes(5 * mib), randomBytes(5 * mib), randomBytes(10)];
    await part(s3, id, 1, randomBytes(100));
    const sent: CompletedPart[] = [];
    for (const number of [3, 2, 1]) sent.unshift(await part(s3, id, number, bytes[number - 1] ?? Buffer.alloc(0)));
    const listed = await s3.send(new ListPartsCommand({ ...target, UploadId: id, MaxParts: 2 }));
    expect([listed.Parts?.map(({ Size }) => Size), listed.IsTruncated, listed.NextPartNumberMarker]).toEqual([
      [5 * mib, 5 * mib],
      true,
      '2',
    ]);
    expect(await complete(s3, id, sent)).toBe('ok');
    const object = await s3.send(new GetObjectCommand({ ...target, Range: `bytes=${5 * mib - 2}-${5 * mib + 1}` }));
    const seam = Buffer.concat(bytes).subarray(5 * mib - 2, 5 * mib + 2);
    expect(Buffer.compare(Buffer.from((await object.Body?.transformToByteArray()) ?? []), seam)).toBe(0);
    expect([object.ETag?.endsWith('-3"'), aws.control.leftovers().map(({ kind }) => kind)]).toEqual([true, ['bucket']]);
    expect(await complete(s3, id, sent)).toBe('NoSuchUpload 404');
  });
});

test('missing, changed, small or unordered parts are refused, and the upload stays open', async () => {
  await withFakeBucket(target.Bucket, async (_aws, s3) => {
    const id = await begin(s3, { ChecksumAlgorithm: 'CRC32' });
    const [first, second] = [await part(s3, id, 1, randomBytes(5 * mib)), await part(s3, id, 2, randomBytes(100))];
    const third = await part(s3, id, 3, randomBytes(100));
    expect(await complete(s3, id, [second, first])).toBe('InvalidPartOrder 400');
    expect(await complete(s3, id, [{ ...first, ETag: second.ETag }])).toBe('InvalidPart 400');
    expect(await complete(s3, id, [first, { ...second, PartNumber: 9 }])).toBe('InvalidPart 400');
    expect(await complete(s3, id, [first, second, third])).toBe('EntityTooSmall 400');
    expect(await complete(s3, id, [{ PartNumber: 1, ETag: first.ETag }])).toBe('InvalidRequest 400');
    expect(await complete(s3, id, [first, second])).toBe('ok');
    const head = await s3.send(new HeadObjectCommand({ ...target, ChecksumMode: 'ENABLED' }));
    expect([head.ChecksumType, head.ChecksumCRC32?.endsWith('-2')]).toEqual(['COMPOSITE', true]);
  });
});

test('an aborted upload is removed with all its parts', async () => {
  await withFakeBucket(target.Bucket, async (aws, s3) => {
    const ids = [await begin(s3), await begin(s3)];
    await part(s3, ids[0] ?? '', 1, randomBytes(mib));
    const { Uploads: uploads } = await s3.send(new ListMultipartUploadsCommand({ Bucket: target.Bucket }));
    expect(uploads?.map(({ UploadId: id }) => id).toSorted()).toEqual(ids.toSorted());
    const abort = (id: string): Promise<string> => outcomeOf(s3.send(new AbortMultipartUploadCommand({ ...target, UploadId: id })));
    expect(aws.control.storedFiles()).toHaveLength(1);
    expect([await abort(ids[0] ?? ''), await abort(ids[0] ?? ''), await abort(ids[1] ?? '')]).toEqual(['ok', 'NoSuchUpload 404', 'ok']);
    expect(aws.control.storedFiles()).toEqual([]);
  });
});
