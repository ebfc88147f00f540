import {
  CreateSecurityGroupCommand,
  DescribeInstancesCommand,
  RunInstances$,
  RunInstancesCommand,
  StopInstancesCommand,
} from '@aws-sdk/client-ec2';
import { PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { HeadBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { HttpRequest } from '@smithy/core/protocols';
import { expect, test } from 'vitest';
import { aLaunch, outcomeOf, withFakeAws, withFakeBucket } from '../testing.ts';
import { modelProblems } from './model-check.ts';

interface Alterable {
  readonly middlewareStack: {
    add(
      change: <Args extends object, Output>(next: (args: Args) => Promise<Output>) => (args: Args) => Promise<Output>,
      options: { step: 'build'; priority: 'high' },
    ): void;
  };
}

/** Changes the SDK's requests, which contain only what the model has, before the SDK adds their length. */
function alter(client: Alterable, change: (request: HttpRequest) => void): void {
  client.middlewareStack.add(
    (next) => (args) => {
      if ('request' in args && HttpRequest.isInstance(args.request)) change(args.request);
      return next(args);
    },
    { step: 'build', priority: 'high' },
  );
}

/** Replaces text in the bodies of a client's requests. */
function replaceInBodies(client: Alterable, replacements: Readonly<Record<string, string>>): void {
  alter(client, (request) => {
    for (const [before, after] of Object.entries(replacements)) request.body = String(request.body).replace(before, after);
  });
}

test('a request without a required member is refused and fails the test', () =>
  withFakeAws({}, async (aws, { ec2, iam }) => {
    replaceInBodies(ec2, { '&MaxCount=1': '', '&GroupDescription=b': '' });
    replaceInBodies(iam, { '&PolicyDocument=c': '' });
    expect(await outcomeOf(ec2.send(new RunInstancesCommand(aLaunch())))).toBe('MissingParameter 400');
    const group = new CreateSecurityGroupCommand({ GroupName: 'a', Description: 'b' });
    expect(await outcomeOf(ec2.send(group))).toBe('MissingParameter 400');
    const policy = new PutRolePolicyCommand({ RoleName: 'a', PolicyName: 'b', PolicyDocument: 'c' });
    expect(await outcomeOf(iam.send(policy))).toBe('MissingParameter 400');
    expect(aws.takeProblems()).toEqual([
      "RunInstances does not fit AWS's model: MaxCount is required and missing",
      "CreateSecurityGroup does not fit AWS's model: Description is required and missing",
      "PutRolePolicy does not fit AWS's model: PolicyDocument is required and missing",
    ]);
  }));

test('a value outside the enumeration of the model is refused and fails the test', () =>
  withFakeAws({}, async (aws, { ec2 }) => {
    replaceInBodies(ec2, { 'ResourceType=instance': 'ResourceType=disk' });
    const launch = aLaunch({ TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a', Value: 'b' }] }] });
    expect(await outcomeOf(ec2.send(new RunInstancesCommand(launch)))).toBe('InvalidParameterValue 400');
    expect(aws.takeProblems()).toEqual([
      "RunInstances does not fit AWS's model: TagSpecifications.1.ResourceType is none of the values in the model: disk",
    ]);
  }));

test('an unknown parameter and a value of another type are refused and fail the test', () =>
  withFakeAws({}, async (aws, { ec2 }) => {
    replaceInBodies(ec2, { 'InstanceId.1=': 'MachineId.1=', 'MaxResults=5': 'MaxResults=five' });
    expect(await outcomeOf(ec2.send(new StopInstancesCommand({ InstanceIds: ['i-1'] })))).toBe('UnknownParameter 400');
    expect(await outcomeOf(ec2.send(new DescribeInstancesCommand({ MaxResults: 5 })))).toBe('InvalidParameterValue 400');
    expect(aws.takeProblems()).toEqual([
      "StopInstances does not fit AWS's model: The parameter MachineId is not recognized",
      "DescribeInstances does not fit AWS's model: Value (five) for parameter MaxResults is invalid.",
    ]);
  }));

test('query parameters and header values of S3 that the model lacks fail the test', () =>
  withFakeBucket('bucket-a', async (aws, s3) => {
    alter(s3, (request) => {
      request.query['colour'] = 'red';
      if (request.headers['x-amz-storage-class'] !== undefined) request.headers['x-amz-storage-class'] = 'FROZEN';
    });
    await s3.send(new PutObjectCommand({ Bucket: 'bucket-a', Key: 'a', Body: 'a', StorageClass: 'STANDARD' }));
    await s3.send(new HeadBucketCommand({ Bucket: 'bucket-a' }));
    expect(aws.takeProblems()).toEqual([
      "PutObject: header x-amz-storage-class is none of the values in AWS's model: FROZEN",
      "PutObject has no query parameter colour in AWS's model",
      "HeadBucket has no query parameter colour in AWS's model",
    ]);
  }));

test('a reply with an unknown member or a wrong value does not fit', () => {
  const reply = { Instances: [{ InstanceId: 1, State: { Name: 'sleeping' }, Colour: 'red', LaunchTime: 'now' }] };
  expect(modelProblems(RunInstances$[5], reply).map(({ text }) => text)).toEqual([
    'Instances.1.InstanceId is of another type: 1',
    'Instances.1.State.Name is none of the values in the model: sleeping',
    'Instances.1.Colour is not in the model',
    'Instances.1.LaunchTime is of another type: now',
  ]);
});
