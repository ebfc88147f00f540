import { expect, test } from 'vitest';
import { aMachineSpec } from '../../../test/support/builders.ts';
import { rootDisk } from './disk.ts';
import { chooseImage, userOfImage } from './image-choice.ts';
import { architectureOf, hasUsualImage } from './instance-types.ts';
import { launchRequest, type LaunchParts } from './launch-request.ts';
import { machineIdOf, readMachineId } from './machine-id.ts';
import { noticeOf, statusOf } from './machine-status.ts';
import { subnetsToTry } from './network.ts';
import { callersTags, clientToken, machineTags, ownerOf } from './tags.ts';

test('architectures follow the names of instance types', () => {
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

test('images are those of the architecture, with drivers where there are GPUs', () => {
  expect(parameters('t3.micro', false)).toBe('/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id');
  expect(parameters('t4g.micro', false)).toBe('/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id');
  expect(parameters('g6.xlarge', true)).toBe('/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id');
  expect(parameters('g5g.xlarge', true)).toBe('/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id');
  expect(parameters('p3.2xlarge', true)).toContain('give an image_id');
});

test('an image_id is taken by region, and what is none is said', () => {
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
])('one logs in to %s as %s', ([name, user]) => {
  expect(userOfImage(name)).toBe(user);
});

test('disks hold the image and stay within what EBS allows', () => {
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
  key: 'k',
  home: 'h',
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

test('the same parts make the same request', () => {
  const shuffled = aMachineSpec({ tags: { 'svc-key': 'k' }, labels: { b: '1', a: '2' } });
  const sorted = aMachineSpec({ tags: { 'svc-key': 'k' }, labels: { a: '2', b: '1' } });
  expect(JSON.stringify(launchRequest({ ...parts, spec: shuffled }))).toBe(JSON.stringify(launchRequest({ ...parts, spec: sorted })));
});

test('a replica that shuts down is gone, a controller only off', () => {
  expect(launchRequest(parts).InstanceInitiatedShutdownBehavior).toBe('terminate');
  expect(launchRequest({ ...parts, spec: aMachineSpec({ role: 'controller' }) }).InstanceInitiatedShutdownBehavior).toBe('stop');
});

test('a machine is in the zone that was asked for, by name or id, or in a given subnet', () => {
  const { offer } = parts;
  expect(launchRequest(parts).Placement).toBeUndefined();
  expect(launchRequest({ ...parts, offer: { ...offer, zone: 'us-east-1b' } }).Placement).toEqual({ AvailabilityZone: 'us-east-1b' });
  expect(launchRequest({ ...parts, offer: { ...offer, zone: 'use1-az2' } }).Placement).toEqual({ AvailabilityZoneId: 'use1-az2' });
  const inSubnet = launchRequest({ ...parts, subnetId: 'subnet-1', publicAddress: false });
  expect(inSubnet).toMatchObject({ NetworkInterfaces: [{ SubnetId: 'subnet-1', Groups: ['sg-1'], AssociatePublicIpAddress: false }] });
  expect(inSubnet.SecurityGroupIds).toBeUndefined();
});

test('spot machines end when they are taken, and their requests are tagged as well', () => {
  const spot = launchRequest({ ...parts, offer: { ...parts.offer, spot: true } });
  expect(spot.InstanceMarketOptions).toEqual({
    MarketType: 'spot',
    SpotOptions: { SpotInstanceType: 'one-time', InstanceInterruptionBehavior: 'terminate' },
  });
  const kinds = ['instance', 'volume', 'network-interface'];
  expect(spot.TagSpecifications?.map(({ ResourceType }) => ResourceType)).toEqual([...kinds, 'spot-instances-request']);
  expect(launchRequest(parts).TagSpecifications?.map(({ ResourceType }) => ResourceType)).toEqual(kinds);
});

test('labels never replace the tags by which a machine is found', () => {
  const tags = machineTags(
    aMachineSpec({ tags: { 'svc-key': 'k' }, labels: { 'svc-key': 'mine', 'svc.home': 'mine', a: 'b' } }),
    'k',
    'h',
    'ubuntu',
  );
  expect(tags).toEqual(
    expect.arrayContaining([
      { Key: 'svc-key', Value: 'k' },
      { Key: 'svc.home', Value: 'h' },
      { Key: 'a', Value: 'b' },
    ]),
  );
  expect(callersTags(tags)).toEqual({ 'svc-key': 'k' });
  expect(ownerOf({ tags: { 'svc-service-key': 's', 'svc-key': 'k' } }, 'x')).toBe('s');
  expect([ownerOf({ tags: { 'svc-key': 'k' } }, 'x'), ownerOf({ tags: {} }, 'x')]).toEqual(['k', 'x']);
});

test('tokens differ by key, request and generation, and fit', () => {
  const tokens = [clientToken('k', ['a'], 0), clientToken('k', ['a'], 1), clientToken('k', ['b'], 0), clientToken('l', ['a'], 0)];
  expect(new Set(tokens).size).toBe(4);
  expect(clientToken('k', ['a'], 0)).toBe(tokens[0]);
  expect(tokens.every((token) => /^[\x21-\x7e]{1,64}$/.test(token))).toBe(true);
});

test('an id says where a machine is and who logs in, and others are none', () => {
  const refs = [
    { region: 'us-east-1', instanceId: 'i-0abc', user: 'ubuntu' },
    { region: 'ap-southeast-2', instanceId: 'i-1', user: 'ec2-user' },
    { region: 'us-gov-west-1', instanceId: 'i-1', user: 'ubuntu' },
  ];
  expect(refs.map(machineIdOf)).toEqual(['us-east-1/i-0abc', 'ap-southeast-2/i-1/ec2-user', 'us-gov-west-1/i-1']);
  expect(refs.map((ref) => readMachineId(machineIdOf(ref)))).toEqual(refs);
  expect(['0123', 'us-east-1', 'us-east-1/x-1', 'us-east-1/i-1/../x', ''].map(readMachineId)).toEqual(
    Array.from({ length: 5 }, () => undefined),
  );
});

type InstanceStateName = NonNullable<NonNullable<Parameters<typeof statusOf>[0]['State']>['Name']>;

test.for<readonly [name: InstanceStateName, reason: string | undefined, status: unknown]>([
  ['pending', undefined, { state: 'booting' }],
  ['running', undefined, { state: 'running' }],
  ['stopping', 'Client.UserInitiatedShutdown', { state: 'stopped' }],
  ['stopped', undefined, { state: 'stopped' }],
  ['shutting-down', 'Server.SpotInstanceTermination', { state: 'gone', reason: 'preempted' }],
  ['terminated', 'Server.InsufficientInstanceCapacity', { state: 'gone', reason: 'preempted' }],
  ['terminated', 'Client.UserInitiatedShutdown', { state: 'gone', reason: 'deleted' }],
  ['terminated', 'Client.InstanceInitiatedShutdown', { state: 'gone', reason: 'deleted' }],
  ['terminated', 'Server.InternalError', { state: 'gone', reason: 'unknown' }],
  ['terminated', undefined, { state: 'gone', reason: 'unknown' }],
])('%s by %s', ([name, reason, status]) => {
  const instance: Parameters<typeof statusOf>[0] = {
    State: { Name: name },
    ...(reason === undefined ? {} : { StateReason: { Code: reason } }),
  };
  expect(statusOf(instance)).toEqual(status);
});

test('a marked spot machine goes two minutes after it was marked', () => {
  const at = new Date('2026-01-01T00:00:00Z');
  expect(noticeOf({ Status: { Code: 'marked-for-termination', UpdateTime: at } })).toEqual({
    kind: 'interruption',
    at: at.getTime() + 120_000,
  });
  expect(noticeOf({ Status: { Code: 'fulfilled', UpdateTime: at } })).toBeUndefined();
  expect(noticeOf({})).toBeUndefined();
});

const subnet = (id: string, zone: string) => ({ id, zone, zoneId: `${zone}-id` });

test('subnets are tried once for each zone, beginning elsewhere for each machine', () => {
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
