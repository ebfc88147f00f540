import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startFakeAws, type FakeAws } from '../../test/fakes/aws/fake-aws.ts';
import { storeCases } from './conformance.ts';
import type { ObjectStore } from './object-store.ts';
import { smallestPart } from './part-plan.ts';
import { findS3Region, openS3Store } from './s3.ts';

const settings = { tags: { 'svc-service-key': '0a1b2c3d' }, expireDays: 30 };
const namesOfEnv = [
  'AWS_ENDPOINT_URL',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
  'AWS_EC2_METADATA_DISABLED',
  'AWS_CONFIG_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
];
const before = namesOfEnv.map((name) => [name, process.env[name]] as const);
const stores: ObjectStore[] = [];
let aws: FakeAws;
let buckets = 0;

beforeAll(async () => {
  aws = await startFakeAws();
  Object.assign(process.env, aws.env);
});
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
});
afterAll(async () => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await aws.close();
});

/** Opens a bucket that no other test uses, any number of times. */
function aBucket(region = 'eu-west-1'): () => ObjectStore {
  buckets += 1;
  const name = `svc-0a1b2c3d-${buckets}`;
  return () => {
    const store = openS3Store({ kind: 's3', region }, name);
    stores.push(store);
    return store;
  };
}

const fetchFrom = async (address: string): Promise<Buffer> => Buffer.from(await (await fetch(address)).arrayBuffer());
const callsOf = (action: string): number => aws.calls.filter((call) => call.action === action && call.outcome === 'ok').length;

describe('S3 as a store', () => {
  test.each(storeCases)('$name', async ({ run }) => {
    await expect(run({ open: aBucket(), fetch: fetchFrom })).resolves.toBeUndefined();
  });
});

test.each(['us-east-1', 'ap-southeast-2'])('a new bucket is private, tagged and has an expiry, in %s', async (region) => {
  const store = aBucket(region)();
  await store.createBucket(settings);
  const made = aws.control.buckets.find(({ name }) => name === store.bucket);
  expect(made?.region).toBe(region);
  expect(Object.fromEntries(made?.tags ?? [])).toEqual(settings.tags);
  for (const action of ['PutPublicAccessBlock', 'PutBucketLifecycleConfiguration']) expect(callsOf(action)).toBeGreaterThan(0);
  await store.deleteBucket();
  expect(aws.control.leftovers().filter(({ id }) => id.startsWith(store.bucket))).toEqual([]);
});

test('a bucket name that another account owns is refused with a sentence', async () => {
  const store = aBucket()();
  aws.control.takeBucketName(store.bucket);
  await expect(store.createBucket(settings)).rejects.toMatchObject({
    code: 'SVC_BUCKET',
    message: expect.stringContaining('another account'),
  });
});

test.each([
  ['AccessDenied', 'SVC_DENIED'],
  ['ExpiredToken', 'SVC_CREDENTIALS'],
  ['InvalidAccessKeyId', 'SVC_CREDENTIALS'],
  ['NoSuchBucket', 'SVC_BUCKET'],
] as const)('the S3 error %s becomes %s', async (code, expected) => {
  const store = aBucket()();
  await store.createBucket(settings);
  const mend = aws.conduct.refuse({ service: 's3', action: 'PutObject' }, code);
  await expect(store.put('key', 'x')).rejects.toMatchObject({ code: expected });
  mend();
});

test.each(['SlowDown', 'InternalError'])('%s is retried', async (code) => {
  const store = aBucket()();
  await store.createBucket(settings);
  aws.conduct.add({ service: 's3', action: 'PutObject', times: 2 }, { kind: 'error', code });
  await store.put('key', 'x');
  expect((await store.head('key'))?.size).toBe(1);
});

test('a lost response and a broken connection are retried without an error', async () => {
  const open = aBucket();
  const store = open();
  for (const kind of ['lose-reply', 'reset'] as const) aws.conduct.add({ service: 's3', action: 'CreateBucket', times: 1 }, { kind });
  await store.createBucket(settings);
  for (const kind of ['lose-reply', 'reset'] as const) aws.conduct.add({ service: 's3', action: 'PutObject', times: 1 }, { kind });
  await store.put('key', 'x');
  expect((await store.head('key'))?.size).toBe(1);
});

test('an aborted upload is resumed with only the missing parts', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-s3-'));
  try {
    const path = join(dir, 'file');
    writeFileSync(path, 'x');
    truncateSync(path, 6 * smallestPart);
    const open = aBucket();
    await open().createBucket(settings);
    const sentBefore = callsOf('UploadPart');
    const stop = new AbortController();
    await open()
      .putFile('blobs/large', path, { signal: stop.signal, onBytes: () => stop.abort() })
      .catch(() => undefined);
    await open().putFile('blobs/large', path);
    // Parts in flight at the abort may or may not have arrived.
    expect(callsOf('UploadPart') - sentBefore).toBeLessThan(6 + 3);
    expect(callsOf('CreateMultipartUpload')).toBeGreaterThan(0);
    expect(aws.control.leftovers().filter(({ kind }) => kind === 'upload')).toEqual([]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('listings of many pages are complete, and their bucket can be removed', async () => {
  aws.conduct.pageLimit = 3;
  try {
    const store = aBucket()();
    await store.createBucket(settings);
    for (let index = 0; index < 10; index += 1) await store.put(`many/${index}`, 'x');
    const keys: string[] = [];
    for await (const { key } of store.list('many/')) keys.push(key);
    expect(keys).toHaveLength(10);
    await store.deleteBucket();
    expect(aws.control.buckets.some(({ name }) => name === store.bucket)).toBe(false);
  } finally {
    aws.conduct.pageLimit = Number.POSITIVE_INFINITY;
  }
});

test('the region of a bucket is found from any other region', async () => {
  const store = aBucket('eu-central-1')();
  await store.createBucket(settings);
  for (const region of ['us-east-1', 'eu-central-1']) expect(await findS3Region({ kind: 's3', region }, store.bucket)).toBe('eu-central-1');
  await expect(findS3Region({ kind: 's3', region: 'us-east-1' }, 'svc-no-such-bucket')).rejects.toMatchObject({ code: 'SVC_BUCKET' });
});

test('a signed address opens only one object and contains no secret key', async () => {
  const store = aBucket()();
  await store.createBucket(settings);
  await store.put('key', 'x');
  const address = new URL(await store.presignGet('key', 60));
  expect(address.href).not.toContain(aws.env['AWS_SECRET_ACCESS_KEY']);
  address.pathname = address.pathname.replace(/key$/, 'other');
  expect((await fetch(address)).status).toBe(403);
});
