import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketLocationCommand,
  GetBucketTaggingCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  ListBucketsCommand,
  PutBucketLifecycleConfigurationCommand,
  PutBucketTaggingCommand,
  PutObjectCommand,
  PutPublicAccessBlockCommand,
  type BucketLocationConstraint,
  type S3Client,
} from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { clientsOf, outcomeOf, withFakeAws } from '../testing.ts';

function create(s3: S3Client, Bucket: string, constraint?: BucketLocationConstraint): Promise<string> {
  const configuration = constraint === undefined ? {} : { CreateBucketConfiguration: { LocationConstraint: constraint } };
  return outcomeOf(s3.send(new CreateBucketCommand({ Bucket, ...configuration })));
}

test('a bucket is created in its region, and us-east-1 has no constraint name', async () => {
  await withFakeAws({}, async (aws, { s3: home }) => {
    const { s3, close } = clientsOf(aws, { region: 'eu-west-1' });
    aws.control.takeBucketName('theirs');
    expect([await create(home, 'mine'), await create(home, 'mine'), await create(home, 'theirs'), await create(home, 'No_Name')]).toEqual([
      'ok',
      'ok',
      'BucketAlreadyExists 409',
      'InvalidBucketName 400',
    ]);
    expect([
      await create(s3, 'irish', 'eu-west-1'),
      await create(s3, 'irish', 'eu-west-1'),
      await create(s3, 'other', 'eu-west-2'),
    ]).toEqual(['ok', 'BucketAlreadyOwnedByYou 409', 'IllegalLocationConstraintException 400']);
    expect((await s3.send(new GetBucketLocationCommand({ Bucket: 'irish' }))).LocationConstraint).toBe('eu-west-1');
    expect((await home.send(new HeadBucketCommand({ Bucket: 'mine' }))).BucketRegion).toBe('us-east-1');
    expect(await outcomeOf(home.send(new PutObjectCommand({ Bucket: 'irish', Key: 'k', Body: 'x' })))).toBe('PermanentRedirect 301');
    expect((await home.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual(['irish', 'mine']);
    close();
  });
});

test('a bucket is deleted only when it is empty', async () => {
  await withFakeAws({}, async (aws, { s3 }) => {
    await create(s3, 'mine');
    await s3.send(new PutObjectCommand({ Bucket: 'mine', Key: 'k', Body: 'x' }));
    const remove = (): Promise<string> => outcomeOf(s3.send(new DeleteBucketCommand({ Bucket: 'mine' })));
    expect(await remove()).toBe('BucketNotEmpty 409');
    await s3.send(new DeleteObjectCommand({ Bucket: 'mine', Key: 'k' }));
    expect([await remove(), await remove()]).toEqual(['ok', 'NoSuchBucket 404']);
    expect(await outcomeOf(s3.send(new HeadBucketCommand({ Bucket: 'mine' })))).toBe('NotFound 404');
    expect(aws.control.leftovers()).toEqual([]);
  });
});

test('tags, lifecycle and public access are returned as they were put', async () => {
  await withFakeAws({}, async (_aws, { s3 }) => {
    const Bucket = 'mine';
    await create(s3, Bucket);
    expect(await outcomeOf(s3.send(new GetBucketTaggingCommand({ Bucket })))).toBe('NoSuchTagSet 404');
    expect(await outcomeOf(s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket })))).toBe('NoSuchLifecycleConfiguration 404');
    const TagSet = [{ Key: 'svc-service', Value: 'a & b' }];
    const Rules = [
      { ID: 'end', Status: 'Enabled' as const, Filter: { Prefix: '' }, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 } },
    ];
    await s3.send(new PutBucketTaggingCommand({ Bucket, Tagging: { TagSet } }));
    await s3.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }));
    await s3.send(
      new PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: { BlockPublicAcls: true, BlockPublicPolicy: false } }),
    );
    expect((await s3.send(new GetBucketTaggingCommand({ Bucket }))).TagSet).toEqual(TagSet);
    expect((await s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket }))).Rules).toEqual(Rules);
    expect((await s3.send(new GetPublicAccessBlockCommand({ Bucket }))).PublicAccessBlockConfiguration).toEqual({
      BlockPublicAcls: true,
      BlockPublicPolicy: false,
    });
  });
});
