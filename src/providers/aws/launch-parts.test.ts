import { expect, test } from 'vitest';
import { aMachineSpec } from '../../../test/support/builders.ts';
import { machineTags } from '../vm/tags.ts';
import { type LaunchParts, launchRequest, rootDisk } from './launch.ts';
import { architectureOf, chooseImage, hasUsualImage, userOfImage } from './image-choice.ts';
import { noticeOf, statusOf } from './machine-status.ts';
import { subnetsToTry } from './network.ts';
import { clientToken } from './tags.ts';

test('the architecture is derived from the instance type', () => {
  expect(['t4g.micro', 'c7gn.large', 'g5g.xlarge', 'im4gn.large', 'a1.medium', 'p6e-gb200.36xlarge'].map(architectureOf)).toEqual(
    Array.from({ length: 6 }, () => 'arm64'),
  );
  expect(
    ['t3.micro', 'g4dn.xlarge', 'g5.xlarge', 'gr6.4xlarge', 'g6e.xlarge', 'p4de.24xlarge', 'p6-b200.48xlarge', 'c7i-flex.large'].map(
      architectureOf,
    ),
  ).toEqual(Array.from({ length: 8 }, () => 'x86_64'));
  expect(['p3.2xlarge', 'g4ad.xlarge', 'inf2.xlarge', 'trn1.2xlarge', 'dl1.24xlarge'].map(hasUsualImage)).toEqual([
    false,
    false,
    false,
    false,
    false,
  ]);
  expect(['g4dn.xlarge', 'p4d.24xlarge', 'p5.48xlarge', 't3.micro'].map(hasUsualImage)).toEqual([true, true, true, true]);
});

const parameters = (instanceType: string, gpu: boolean): unknown => {
  const choice = chooseImage(undefined, { region: 'us-east-1', instanceType, accelerator: gpu ? { name: 'L4', count: 1 } : undefined });
  return typeof choice === 'string' ? choice : choice.kind === 'usual' && choice.parameters[0];
};

test('the default image matches the architecture and has drivers for GPUs', () => {
  expect(parameters('t3.micro', false)).toBe('/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id');
  expect(parameters('t4g.micro', false)).toBe('/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id');
  expect(parameters('g6.xlarge', true)).toBe('/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id');
  expect(parameters('g5g.xlarge', true)).toBe('/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id');
  expect(parameters('p3.2xlarge', true)).toContain('give an image_id');
});

test('image_id is chosen by region, and an invalid one is explained', () => {
  const offer = { region: 'eu-west-1', instanceType: 't3.micro', accelerator: undefined };
  expect(chooseImage('ami-0abc', offer)).toEqual({ kind: 'given', id: 'ami-0abc' });
  expect(chooseImage({ 'eu-west-1': 'ami-1' }, offer)).toEqual({ kind: 'given', id: 'ami-1' });
  expect(chooseImage({ 'us-east-1': 'ami-1' }, offer)).toContain('no image for eu-west-1');
  expect(chooseImage('docker:vllm/vllm-openai', offer)).toContain("the container 'docker:vllm/vllm-openai'");
  expect(chooseImage('skypilot:gpu-ubuntu-2004', offer)).toContain('ami-...');
});

test.for([
  ['ubuntu/images/hvm-ssd/ubuntu-noble-24.04-amd64-server', 'ubuntu'],
  ['al2023-ami-2023.10-kernel-6.1-x86_64', 'ec2-user'],
  ['debian-12-amd64', 'admin'],
  ['RHEL-9.4_HVM', 'ec2-user'],
  ['our golden image', 'ubuntu'],
])('the login user of the image %s is %s', ([name, user]) => {
  expect(userOfImage(name)).toBe(user);
});

test('a disk holds the image and stays within the limits of EBS', () => {
  expect(rootDisk(50, { volume: 'gp3', iops: 3_500, throughputMbs: 218 }, 8)).toEqual({
    sizeGb: 50,
    type: 'gp3',
    iops: 3_500,
    throughput: 218,
  });
  expect(rootDisk(10, { volume: 'gp3', iops: 7_000, throughputMbs: 437 }, 8)).toEqual({
    sizeGb: 10,
    type: 'gp3',
    iops: 5_000,
    throughput: 437,
  });
  expect(rootDisk(10, { volume: 'io2', iops: 20_000, throughputMbs: undefined }, 65)).toMatchObject({ sizeGb: 65, iops: 20_000 });
  expect(rootDisk(5, { volume: 'io2', iops: 20_000, throughputMbs: undefined }, 4)).toMatchObject({ sizeGb: 5, iops: 5_000 });
  expect(rootDisk(10, { volume: 'standard', iops: undefined, throughputMbs: undefined }, 8)).toMatchObject({
    type: 'standard',
    iops: undefined,
  });
  expect(rootDisk(10, undefined, 8)).toEqual({ sizeGb: 10, type: 'gp3', iops: 3_000, throughput: 125 });
  expect(() => rootDisk(10, { volume: 'gp9', iops: 1, throughputMbs: 1 }, 8)).toThrow('gp9');
});

const parts: LaunchParts = {
  offer: {
    provider: 'aws',
    region: 'us-east-1',
    zone: undefined,
    instanceType: 't3.small',
    cpus: 2,
    memoryGb: 2,
    accelerator: undefined,
    spot: false,
    hourlyUsd: 0.02,
  },
  spec: aMachineSpec({ tags: { 'svc-key': 'k' } }),
  tags: machineTags(aMachineSpec({ tags: { 'svc-key': 'k' } }), 'k', 'h', 'ubuntu'),
  image: { id: 'ami-1', rootDevice: '/dev/sda1', sizeGb: 8, user: 'ubuntu' },
  disk: { sizeGb: 10, type: 'gp3', iops: 3_000, throughput: 125 },
  keyName: 'svc-h',
  groupId: 'sg-1',
  subnetId: undefined,
  publicAddress: true,
  userData: '#!/bin/sh\n',
  instanceProfile: undefined,
  clientToken: 'token',
};

test('equal parts produce equal requests', () => {
  const shuffled = aMachineSpec({ tags: { 'svc-key': 'k' }, labels: { b: '1', a: '2' } });
  const sorted = aMachineSpec({ tags: { 'svc-key': 'k' }, labels: { a: '2', b: '1' } });
  const [one, other] = [shuffled, sorted].map((spec) => launchRequest({ ...parts, spec, tags: machineTags(spec, 'k', 'h', 'ubuntu') }));
  expect(JSON.stringify(one)).toBe(JSON.stringify(other));
});

test('a shutdown terminates a replica and stops a controller', () => {
  expect(launchRequest(parts).InstanceInitiatedShutdownBehavior).toBe('terminate');
  expect(launchRequest({ ...parts, spec: aMachineSpec({ role: 'controller' }) }).InstanceInitiatedShutdownBehavior).toBe('stop');
});

test('a machine is placed in the requested zone or the given subnet', () => {
  const { offer } = parts;
  expect(launchRequest(parts).Placement).toBeUndefined();
  expect(launchRequest({ ...parts, offer: { ...offer, zone: 'us-east-1b' } }).Placement).toEqual({ AvailabilityZone: 'us-east-1b' });
  expect(launchRequest({ ...parts, offer: { ...offer, zone: 'use1-az2' } }).Placement).toEqual({ AvailabilityZoneId: 'use1-az2' });
  const inSubnet = launchRequest({ ...parts, subnetId: 'subnet-1', publicAddress: false });
  expect(inSubnet).toMatchObject({ NetworkInterfaces: [{ SubnetId: 'subnet-1', Groups: ['sg-1'], AssociatePublicIpAddress: false }] });
});

test.for([
  [undefined, true],
  [undefined, false],
  ['subnet-1', true],
  ['subnet-1', false],
] as const)('with subnet %s and public address %s, only the network interface names them', ([subnetId, publicAddress]) => {
  const { NetworkInterfaces, SecurityGroupIds, SecurityGroups, SubnetId } = launchRequest({ ...parts, subnetId, publicAddress });
  const subnet = subnetId === undefined ? {} : { SubnetId: subnetId };
  expect(NetworkInterfaces).toEqual([
    { DeviceIndex: 0, Groups: ['sg-1'], AssociatePublicIpAddress: publicAddress, DeleteOnTermination: true, ...subnet },
  ]);
  expect([SecurityGroupIds, SecurityGroups, SubnetId]).toEqual([undefined, undefined, undefined]);
});

test('a preempted spot machine terminates, and its spot request is tagged', () => {
  const spot = launchRequest({ ...parts, offer: { ...parts.offer, spot: true } });
  expect(spot.InstanceMarketOptions).toEqual({
    MarketType: 'spot',
    SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
  });
  const kinds = ['instance', 'volume', 'network-interface'];
  expect(spot.TagSpecifications?.map(({ ResourceType }) => ResourceType)).toEqual([...kinds, 'spot-instances-request']);
  expect(launchRequest(parts).TagSpecifications?.map(({ ResourceType }) => ResourceType)).toEqual(kinds);
});

test('tokens differ by key, request and generation, and have a valid form', () => {
  const tokens = [clientToken('k', ['a'], 0), clientToken('k', ['a'], 1), clientToken('k', ['b'], 0), clientToken('l', ['a'], 0)];
  expect(new Set(tokens).size).toBe(4);
  expect(clientToken('k', ['a'], 0)).toBe(tokens[0]);
  expect(tokens.every((token) => /^[\x21-\x7e]{1,64}$/.test(token))).toBe(true);
});

type InstanceStateName = NonNullable<NonNullable<Parameters<typeof statusOf>[0]['State']>['Name']>;

const gone = (reason: string, message: string, ...[kind, scope]: readonly string[]): unknown => ({
  state: 'gone',
  reason,
  message,
  mayPass: true,
  ...(kind !== undefined && { refusal: { kind, scope } }),
});

test.for<readonly [name: InstanceStateName, reason: string | undefined, status: unknown]>([
  ['pending', undefined, { state: 'booting' }],
  ['running', undefined, { state: 'running' }],
  ['stopping', 'Client.UserInitiatedShutdown', { state: 'stopped' }],
  ['stopped', undefined, { state: 'stopped' }],
  ['shutting-down', 'Server.SpotInstanceTermination', gone('preempted', 'Server.SpotInstanceTermination', 'capacity', 'zone')],
  ['terminated', 'Server.InsufficientInstanceCapacity', gone('preempted', 'Server.InsufficientInstanceCapacity', 'capacity', 'zone')],
  ['terminated', 'Client.VolumeLimitExceeded', gone('unknown', 'Client.VolumeLimitExceeded', 'quota', 'whole-region')],
  ['terminated', 'Client.InvalidSnapshot.NotFound', gone('unknown', 'Client.InvalidSnapshot.NotFound', 'setup', 'whole-region')],
  ['terminated', 'Client.SomethingNewLimitExceeded', gone('unknown', 'Client.SomethingNewLimitExceeded', 'quota', 'whole-region')],
  ['terminated', 'Client.UserInitiatedShutdown', gone('deleted', 'Client.UserInitiatedShutdown')],
  ['terminated', 'Client.InstanceInitiatedShutdown', gone('deleted', 'Client.InstanceInitiatedShutdown')],
  ['terminated', 'Server.InternalError', gone('unknown', 'Server.InternalError')],
  ['terminated', 'Server.SomethingNew', gone('unknown', 'Server.SomethingNew')],
  ['terminated', undefined, { state: 'gone', reason: 'unknown' }],
])('an instance in state %s with reason %s has the expected status', ([name, reason, status]) => {
  const instance: Parameters<typeof statusOf>[0] = {
    State: { Name: name },
    ...(reason === undefined ? {} : { StateReason: { Code: reason } }),
  };
  expect(statusOf(instance, 'us-east-1')).toEqual(status);
});

const volumeLimit = 'Client.VolumeLimitExceeded: Volume limit exceeded';

test.for<readonly [code: string | undefined, message: string | undefined, transition: string | undefined]>([
  ['Client.VolumeLimitExceeded', volumeLimit, undefined],
  ['Client.VolumeLimitExceeded', 'Volume limit exceeded', undefined],
  [undefined, undefined, volumeLimit],
  ['', '', volumeLimit],
  ['', volumeLimit, ''],
  ['pending', 'pending', volumeLimit],
])('a termination reason is in the words of AWS: %s, %s, %s', ([code, message, transition]) => {
  const StateReason = code === undefined ? undefined : { Code: code, Message: message };
  const ended = statusOf({ State: { Name: 'terminated' }, StateReason, StateTransitionReason: transition }, 'us-east-1');
  expect(ended).toMatchObject({ message: volumeLimit, refusal: { kind: 'quota', scope: 'whole-region' } });
});

test.for<readonly [code: string | undefined, message: string | undefined, transition: string | undefined, said: string]>([
  ['Client.InternalError', 'Client.InternalError: Client error on launch', undefined, 'Client.InternalError: Client error on launch.'],
  ['Client.InternalError', '', undefined, 'Client.InternalError.'],
  // EC2 puts its own code before the code of the cause.
  ['Server.InternalError', 'Client.InternalError: Client error on launch', 'Server.InternalError', 'Client.InternalError: Client error on'],
  [
    'Server.InternalError',
    'Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state',
    'Server.InternalError',
    'Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state.',
  ],
  ['Server.InternalError', '', 'Client.InvalidKMSKey.InvalidState', 'Client.InvalidKMSKey.InvalidState.'],
  ['Client.InvalidKMSKey.InvalidState', 'The key is disabled.', undefined, 'Client.InvalidKMSKey.InvalidState: The key is disabled.'],
])('a disk key that EC2 cannot use is named with the next command: %s, %s, %s', ([Code, Message, StateTransitionReason, said]) => {
  const ended = statusOf({ State: { Name: 'terminated' }, StateReason: { Code, Message }, StateTransitionReason }, 'eu-west-1');
  expect(ended).toMatchObject({ reason: 'unknown', refusal: { kind: 'setup', scope: 'whole-region' } });
  const message = ended.state === 'gone' ? (ended.message ?? '') : '';
  expect(message.startsWith(said)).toBe(true);
  expect(message).toContain('EC2 cannot use the KMS key that encrypts the disk');
  expect(message).toMatch(/Find the key with: aws ec2 get-ebs-default-kms-key-id --region eu-west-1$/);
});

test('a reason of the pending state does not explain the end', () => {
  const ended = statusOf({ State: { Name: 'terminated' }, StateReason: { Code: 'pending', Message: 'pending' } }, 'us-east-1');
  expect(ended).toEqual({ state: 'gone', reason: 'unknown' });
});

test("a spot machine's interruption time is two minutes after its mark", () => {
  const at = new Date('2026-01-01T00:00:00Z');
  expect(noticeOf({ Status: { Code: 'marked-for-termination', UpdateTime: at } })).toEqual({
    kind: 'interruption',
    at: at.getTime() + 120_000,
  });
  expect(noticeOf({ Status: { Code: 'fulfilled', UpdateTime: at } })).toBeUndefined();
  expect(noticeOf({})).toBeUndefined();
});

const subnet = (id: string, zone: string) => ({ id, zone, zoneId: `${zone}-id` });

test('each zone gets one subnet, and the first zone differs between machines', () => {
  const subnets = [subnet('1', 'a'), subnet('2', 'a'), subnet('3', 'b'), subnet('4', 'c')];
  const ids = (zone: string | undefined, spread: number): string =>
    subnetsToTry(subnets, zone, spread)
      .map(({ id }) => id)
      .join('');
  expect([ids(undefined, 0), ids(undefined, 1), ids(undefined, 5), ids('a', 0), ids('b-id', 3), ids('z', 0)]).toEqual([
    '134',
    '341',
    '413',
    '12',
    '3',
    '',
  ]);
});
