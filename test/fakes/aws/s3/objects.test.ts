import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { expect, test } from 'vitest';
import { clientsOf, outcomeOf, withFakeBucket } from '../testing.ts';

const Bucket = 'of-a-test';
const oddKey = "a b/ü&+(1)'*!~=?#%20.txt";

test("an object's bytes are returned unchanged, however they were sent", async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    const bytes = randomBytes(3_000_000);
    const pieces = [0, 1, 2].map((index) => bytes.subarray(index * 1_000_000, (index + 1) * 1_000_000));
    await s3.send(new PutObjectCommand({ Bucket, Key: 'whole', Body: bytes }));
    await s3.send(new PutObjectCommand({ Bucket, Key: 'streamed', Body: Readable.from(pieces), ContentLength: bytes.length }));
    await s3.send(
      new PutObjectCommand({ Bucket, Key: 'sha', Body: Readable.from(pieces), ContentLength: bytes.length, ChecksumAlgorithm: 'SHA256' }),
    );
    await s3.send(new PutObjectCommand({ Bucket, Key: 'empty', Body: '' }));
    for (const Key of ['whole', 'streamed', 'sha']) {
      const object = await s3.send(new GetObjectCommand({ Bucket, Key }));
      const got = await object.Body?.transformToByteArray();
      expect([Key, Buffer.compare(Buffer.from(got ?? []), bytes), object.ETag]).toEqual([
        Key,
        0,
        `"${createHash('md5').update(bytes).digest('hex')}"`,
      ]);
    }
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: 'sha', ChecksumMode: 'ENABLED' }));
    expect(head.ChecksumSHA256).toBe(createHash('sha256').update(bytes).digest('base64'));
    expect((await s3.send(new HeadObjectCommand({ Bucket, Key: 'empty' }))).ContentLength).toBe(0);
    expect(aws.control.buckets[0]?.objects.size).toBe(4);
  });
});

test('headers and metadata are stored, without the transfer encoding', async () => {
  await withFakeBucket(Bucket, async (_aws, s3) => {
    const Body = Readable.from([Buffer.from('hello')]);
    await s3.send(new PutObjectCommand({ Bucket, Key: oddKey, Body, ContentLength: 5, ContentType: 'text/x', Metadata: { mode: '755' } }));
    const found = await s3.send(new GetObjectCommand({ Bucket, Key: oddKey }));
    expect([await found.Body?.transformToString(), found.ContentType, found.Metadata, found.ContentEncoding]).toEqual([
      'hello',
      'text/x',
      { mode: '755' },
      undefined,
    ]);
    await s3.send(new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/${encodeURIComponent(oddKey)}` }));
    expect((await s3.send(new HeadObjectCommand({ Bucket, Key: 'copy' }))).Metadata).toEqual({ mode: '755' });
  });
});

test('a range is returned, and a range beyond the end is refused', async () => {
  await withFakeBucket(Bucket, async (_aws, s3) => {
    await s3.send(new PutObjectCommand({ Bucket, Key: 'k', Body: '0123456789' }));
    const range = async (Range: string): Promise<string | undefined> =>
      (await s3.send(new GetObjectCommand({ Bucket, Key: 'k', Range }))).Body?.transformToString();
    expect([await range('bytes=2-4'), await range('bytes=7-'), await range('bytes=-2'), await range('bytes=8-99')]).toEqual([
      '234',
      '789',
      '89',
      '89',
    ]);
    expect(await outcomeOf(range('bytes=10-'))).toBe('InvalidRange 416');
  });
});

test('a wrong checksum or a modified body is refused, and nothing is stored', async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    const put = (more: object): Promise<string> => outcomeOf(s3.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'hello', ...more })));
    expect([await put({ ChecksumCRC32: 'AAAAAA==' }), await put({ ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' })]).toEqual([
      'BadDigest 400',
      'BadDigest 400',
    ]);
    s3.middlewareStack.add(
      (next) => (args) => {
        if (typeof args.request === 'object' && args.request !== null && 'body' in args.request) args.request.body = 'hallo';
        return next(args);
      },
      { step: 'finalizeRequest', priority: 'low' },
    );
    expect(await put({ ChecksumCRC32: 'NhCmhg==' })).toMatch(/BadDigest|XAmzContentSHA256Mismatch/);
    expect(aws.control.buckets[0]?.objects.size).toBe(0);
  });
});

test('preconditions on the existing object apply to writes', async () => {
  await withFakeBucket(Bucket, async (_aws, s3) => {
    const put = (more: object): Promise<string> => outcomeOf(s3.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x', ...more })));
    expect([await put({ IfNoneMatch: '*' }), await put({ IfNoneMatch: '*' }), await put({ IfMatch: '"no"' }), await put({})]).toEqual([
      'ok',
      'PreconditionFailed 412',
      'PreconditionFailed 412',
      'ok',
    ]);
  });
});

test('a presigned URL works only for its request, until it expires', async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    await s3.send(new PutObjectCommand({ Bucket, Key: oddKey, Body: 'hello' }));
    const sign = (signedAgoMs: number): Promise<string> =>
      getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: oddKey }), { expiresIn: 60, signingDate: new Date(Date.now() - signedAgoMs) });
    const url = await sign(0);
    const good = await fetch(url, { headers: { range: 'bytes=1-2' } });
    expect([good.status, await good.text()]).toEqual([206, 'el']);
    const put = await fetch(await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: 'put' }), { expiresIn: 60 }), {
      method: 'PUT',
      body: 'new',
    });
    expect([put.status, aws.control.buckets[0]?.objects.get('put')?.body.size]).toEqual([200, 3]);
    const refused = [
      fetch(url, { method: 'DELETE' }),
      fetch(url.replace('.txt', '.tx')),
      fetch(await sign(61_000)),
      fetch(url.split('?')[0] ?? ''),
    ];
    const texts = await Promise.all(refused.map(async (response) => (await response).text()));
    expect(texts.map((text) => /<Code>(.*)<\/Code>/.exec(text)?.[1])).toEqual([
      'SignatureDoesNotMatch',
      'SignatureDoesNotMatch',
      'AccessDenied',
      'AccessDenied',
    ]);
  });
});

test('the bucket may be part of the host name', async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    await s3.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'hello' }));
    const { port } = new URL(aws.endpoint);
    const { s3: virtualHosts, close } = clientsOf(aws, { endpoint: `http://localhost:${port}` });
    const virtual = await getSignedUrl(virtualHosts, new GetObjectCommand({ Bucket, Key: 'k' }), { expiresIn: 60 });
    close();
    const { host, pathname, search } = new URL(virtual);
    expect([host, pathname]).toEqual([`${Bucket}.localhost:${port}`, '/k']);
    const text = await new Promise<string>((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port, path: pathname + search, headers: { host } }, (response) => {
        let got = '';
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => (got += chunk))
          .on('end', () => resolve(got));
      });
      call.on('error', reject).end();
    });
    expect(text).toBe('hello');
  });
});

test('a listing is in byte order of keys, by pages and folders', async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    const keys = ['a/1', 'a/2', 'b', 'é/1', 'z', '\u{1F600}'];
    for (const Key of keys) await s3.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
    const seen: (string | undefined)[] = [];
    let token: string | undefined;
    do {
      const page = await s3.send(
        new ListObjectsV2Command({ Bucket, MaxKeys: 2, ...(token === undefined ? {} : { ContinuationToken: token }) }),
      );
      seen.push(...(page.Contents ?? []).map(({ Key }) => Key));
      token = page.NextContinuationToken;
    } while (token !== undefined);
    expect(seen).toEqual(['a/1', 'a/2', 'b', 'z', 'é/1', '\u{1F600}']);
    const folders = await s3.send(new ListObjectsV2Command({ Bucket, Delimiter: '/' }));
    expect([folders.CommonPrefixes?.map(({ Prefix }) => Prefix), folders.Contents?.length]).toEqual([['a/', 'é/'], 3]);
    await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'a/1' }, { Key: 'none' }, { Key: '\u{1F600}' }] } }));
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'b' }));
    expect(aws.control.buckets[0]?.objects.sorted().map(({ key }) => key)).toEqual(['a/2', 'z', 'é/1']);
    expect(await outcomeOf(s3.send(new GetObjectCommand({ Bucket, Key: 'b' })))).toBe('NoSuchKey 404');
    expect(await outcomeOf(s3.send(new HeadObjectCommand({ Bucket, Key: 'b' })))).toBe('NotFound 404');
  });
});

test('injected delays and errors apply; a lost reply has stored the object', async () => {
  await withFakeBucket(Bucket, async (aws, s3) => {
    const put = (Key: string): Promise<string> => outcomeOf(s3.send(new PutObjectCommand({ Bucket, Key, Body: 'x' })));
    aws.conduct.refuse({ service: 's3', times: 1 }, 'SlowDown');
    aws.conduct.refuse({ action: 'PutObject', times: 1 }, 'InternalError');
    expect([await put('a'), await put('a'), await put('a')]).toEqual(['SlowDown 503', 'InternalError 500', 'ok']);
    aws.conduct.add({ action: 'PutObject', times: 1 }, { kind: 'lose-reply' });
    expect(await put('b')).not.toBe('ok');
    expect(aws.control.buckets[0]?.objects.get('b')?.body.size).toBe(1);
  });
});
