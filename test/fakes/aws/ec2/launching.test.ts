import {
  DescribeInstancesCommand,
  DescribeVolumesCommand,
  RunInstancesCommand,
  StartInstancesCommand,
  StopInstancesCommand,
  TerminateInstancesCommand,
  type RunInstancesCommandInput,
} from '@aws-sdk/client-ec2';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import { aLaunch, outcomeOf, ubuntuIn, withFakeAws, type Clients } from '../testing.ts';

const slow = { pendingMs: [10_000, 10_000], stoppingMs: [5_000, 5_000], shuttingDownMs: [5_000, 5_000] } as const;

async function launch({ ec2 }: Clients, more: Partial<RunInstancesCommandInput> = {}): Promise<string> {
  const { Instances: instances = [] } = await ec2.send(new RunInstancesCommand(aLaunch(more)));
  return instances[0]?.InstanceId ?? '';
}

async function describeInstance(
  { ec2 }: Clients,
  id: string,
): Promise<{ readonly state: string; readonly address: string; readonly launched: number }> {
  const { Reservations: found = [] } = await ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
  const one = found[0]?.Instances?.[0];
  return { state: one?.State?.Name ?? '', address: one?.PublicIpAddress ?? '', launched: one?.LaunchTime?.getTime() ?? 0 };
}

test('an instance runs, stops, starts with another address, terminates, and stays listed an hour', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock, timing: slow }, async (_aws, clients) => {
    const id = await launch(clients);
    expect(await describeInstance(clients, id)).toMatchObject({ state: 'pending', address: '' });
    await clock.advance(10_000);
    const first = await describeInstance(clients, id);
    expect(first).toMatchObject({ state: 'running', address: expect.stringMatching(/^127\.64\./) });

    await clients.ec2.send(new StopInstancesCommand({ InstanceIds: [id] }));
    expect(await describeInstance(clients, id)).toMatchObject({ state: 'stopping', address: '' });
    expect(await outcomeOf(clients.ec2.send(new StartInstancesCommand({ InstanceIds: [id] })))).toBe('IncorrectInstanceState 400');
    await clock.advance(5_000);
    expect(await describeInstance(clients, id)).toMatchObject({ state: 'stopped' });
    await clients.ec2.send(new StartInstancesCommand({ InstanceIds: [id] }));
    await clock.advance(10_000);
    const second = await describeInstance(clients, id);
    expect([second.state, second.address === first.address, second.launched - first.launched]).toEqual(['running', false, 15_000]);

    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    await clock.advance(5_000);
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(await describeInstance(clients, id)).toMatchObject({ state: 'terminated', address: '' });
    await clock.advance(3_600_000);
    expect(await outcomeOf(describeInstance(clients, id))).toBe('InvalidInstanceID.NotFound 400');
  });
});

test('a zone or a type can have its own boot time', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock, timing: slow }, async (aws, clients) => {
    aws.control.setPending({ zone: 'us-east-1b' }, [60_000, 60_000]);
    const slower = await launch(clients, { Placement: { AvailabilityZone: 'us-east-1b' } });
    const usual = await launch(clients, { Placement: { AvailabilityZone: 'us-east-1a' } });
    await clock.advance(10_000);
    expect([(await describeInstance(clients, slower)).state, (await describeInstance(clients, usual)).state]).toEqual([
      'pending',
      'running',
    ]);
    await clock.advance(50_000);
    expect((await describeInstance(clients, slower)).state).toBe('running');
  });
});

test('a repeated token returns the same instance, and refuses different parameters', async () => {
  await withFakeAws({}, async (aws, clients) => {
    const ids = await Promise.all([1, 2, 3].map(() => launch(clients, { ClientToken: 'once' })));
    expect([new Set(ids).size, aws.control.instances.length]).toEqual([1, 1]);
    expect(await outcomeOf(launch(clients, { ClientToken: 'once', InstanceType: 't3.small' }))).toBe('IdempotentParameterMismatch 400');
    expect(await launch(clients, { ClientToken: 'twice' })).not.toBe(ids[0]);
  });
});

test('disks are deleted with their instance unless they are to be kept', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock, timing: slow }, async (aws, clients) => {
    const id = await launch(clients, {
      BlockDeviceMappings: [
        { DeviceName: '/dev/sda1', Ebs: { VolumeSize: 40, VolumeType: 'gp3', Iops: 6_000, Throughput: 250 } },
        { DeviceName: '/dev/sdb', Ebs: { VolumeSize: 10, VolumeType: 'gp3', DeleteOnTermination: false } },
      ],
      TagSpecifications: [{ ResourceType: 'volume', Tags: [{ Key: 'of', Value: 'me' }] }],
    });
    const { Volumes: volumes = [] } = await clients.ec2.send(new DescribeVolumesCommand({ Filters: [{ Name: 'tag:of', Values: ['me'] }] }));
    expect(volumes.map((one) => [one.Size, one.Iops, one.Throughput, one.Attachments?.[0]?.Device])).toEqual([
      [40, 6_000, 250, '/dev/sda1'],
      [10, 3_000, 125, '/dev/sdb'],
    ]);
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    await clock.advance(5_000);
    expect(aws.control.leftovers()).toEqual([{ kind: 'volume', region: 'us-east-1', id: volumes[1]?.VolumeId, tags: { of: 'me' } }]);
  });
});

const card = { DeviceIndex: 0, AssociatePublicIpAddress: false };

test("a contradictory launch is refused with AWS's error", async () => {
  await withFakeAws({}, async (aws, clients) => {
    const refusals: readonly (readonly [Partial<RunInstancesCommandInput>, string])[] = [
      [{ InstanceType: 't3.micro', ImageId: ubuntuIn('us-east-1', 'arm64') }, 'InvalidParameterValue 400'],
      [{ ImageId: ubuntuIn('us-east-2') }, 'InvalidAMIID.NotFound 400'],
      [{ ImageId: 'ubuntu' }, 'InvalidAMIID.Malformed 400'],
      [{ KeyName: 'none' }, 'InvalidKeyPair.NotFound 400'],
      [{ SecurityGroupIds: ['sg-00000000'] }, 'InvalidGroup.NotFound 400'],
      [{ SubnetId: 'subnet-1' }, 'InvalidSubnetID.NotFound 400'],
      [{ Placement: { AvailabilityZone: 'us-east-1x' } }, 'InvalidParameterValue 400'],
      [{ IamInstanceProfile: { Name: 'none' } }, 'InvalidParameterValue 400'],
      [{ UserData: 'no base64!' }, 'InvalidParameterValue 400'],
      [{ UserData: Buffer.alloc(17_000).toString('base64') }, 'InvalidParameterValue 400'],
      [{ BlockDeviceMappings: [{ DeviceName: '/dev/sda1', Ebs: { VolumeSize: 4 } }] }, 'InvalidBlockDeviceMapping 400'],
      [{ TagSpecifications: [{ ResourceType: 'vpc', Tags: [] }] }, 'InvalidParameterValue 400'],
      [{ NetworkInterfaces: [card], SecurityGroupIds: ['sg-1'] }, 'InvalidParameterCombination 400'],
      [{ NetworkInterfaces: [card], SecurityGroups: ['default'] }, 'InvalidParameterCombination 400'],
      [{ NetworkInterfaces: [card], SubnetId: 'subnet-1' }, 'InvalidParameterCombination 400'],
      [{ NetworkInterfaces: [{ AssociatePublicIpAddress: false }] }, 'InvalidParameterValue 400'],
      [{ NetworkInterfaces: [{ ...card, DeviceIndex: 1 }] }, 'InvalidParameterCombination 400'],
      [{ NetworkInterfaces: [card, { DeviceIndex: 1 }] }, 'InvalidParameterCombination 400'],
      [{ MinCount: 2, MaxCount: 1 }, 'InvalidParameterValue 400'],
      [{ DryRun: true }, 'DryRunOperation 412'],
    ];
    for (const [more, outcome] of refusals) expect([more, await outcomeOf(launch(clients, more))]).toEqual([more, outcome]);
    expect(aws.control.instances).toEqual([]);
  });
});

test('new instances and their tags are invisible to reads for a while', async () => {
  const clock = new FakeClock();
  const invisibleMs = { instance: [3_000, 3_000], tag: [5_000, 5_000], group: [0, 0], key: [0, 0], iam: [0, 0] } as const;
  await withFakeAws({ clock, timing: { invisibleMs } }, async (_aws, clients) => {
    const id = await launch(clients, { TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'a', Value: 'b' }] }] });
    const byTag = async (): Promise<number | undefined> => {
      const { Reservations: found } = await clients.ec2.send(new DescribeInstancesCommand({ Filters: [{ Name: 'tag:a', Values: ['b'] }] }));
      return found?.length;
    };
    expect(await outcomeOf(describeInstance(clients, id))).toBe('InvalidInstanceID.NotFound 400');
    expect(await outcomeOf(clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] })))).toBe('InvalidInstanceID.NotFound 400');
    await clock.advance(3_000);
    expect([(await describeInstance(clients, id)).state, await byTag()]).toEqual(['running', 0]);
    await clock.advance(2_000);
    expect(await byTag()).toBe(1);
  });
});

test('listings are paged, and terminations in between shift no items', async () => {
  await withFakeAws({}, async (aws, clients) => {
    await launch(clients, { MinCount: 12, MaxCount: 12 });
    const seen: string[] = [];
    let token: string | undefined;
    do {
      const found = await clients.ec2.send(
        new DescribeInstancesCommand({ MaxResults: 5, ...(token === undefined ? {} : { NextToken: token }) }),
      );
      seen.push(...(found.Reservations ?? []).flatMap(({ Instances: all = [] }) => all.map(({ InstanceId: id = '' }) => id)));
      token = found.NextToken;
    } while (token !== undefined);
    expect(seen).toEqual(aws.control.instances.map(({ id }) => id));
    expect(await outcomeOf(clients.ec2.send(new DescribeInstancesCommand({ MaxResults: 4 })))).toBe('InvalidParameterValue 400');
    expect(await outcomeOf(clients.ec2.send(new DescribeInstancesCommand({ Filters: [{ Name: 'no-such', Values: [] }] })))).toBe(
      'InvalidParameterValue 400',
    );
    aws.conduct.pageLimit = 3;
    const short = await clients.ec2.send(new DescribeInstancesCommand({}));
    expect([short.Reservations?.[0]?.Instances?.length, short.NextToken === undefined]).toEqual([3, false]);
  });
});

test('with a machine backend an instance is a machine from launch to termination', async () => {
  const calls: string[] = [];
  const addresses = { publicIp: '127.9.9.9', privateIp: '10.9.9.9' };
  const machines = {
    launch: (one: { readonly userData: string | undefined }) => Promise.resolve((calls.push(`launch ${one.userData ?? ''}`), addresses)),
    start: () => Promise.resolve((calls.push('start'), addresses)),
    stop: () => Promise.resolve(void calls.push('stop')),
    terminate: () => Promise.resolve(void calls.push('terminate')),
  };
  const clock = new FakeClock();
  await withFakeAws({ clock, machines }, async (_aws, clients) => {
    const id = await launch(clients, { UserData: Buffer.from('hello').toString('base64') });
    await clock.advance(100);
    expect(await describeInstance(clients, id)).toMatchObject({ state: 'running', address: '127.9.9.9' });
    await clients.ec2.send(new StopInstancesCommand({ InstanceIds: [id] }));
    await clock.advance(100);
    await clients.ec2.send(new StartInstancesCommand({ InstanceIds: [id] }));
    await clients.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(calls).toEqual(['launch hello', 'stop', 'start', 'terminate']);
  });
});
