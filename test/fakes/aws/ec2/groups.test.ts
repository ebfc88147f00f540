import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  CreateTagsCommand,
  DeleteKeyPairCommand,
  DeleteSecurityGroupCommand,
  DescribeImagesCommand,
  DescribeKeyPairsCommand,
  DescribeSecurityGroupRulesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  ImportKeyPairCommand,
  RevokeSecurityGroupIngressCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../support/fake-clock.ts';
import { aLaunch, outcomeOf, ubuntuIn, withFakeAws, type Clients } from '../testing.ts';

const quick = { pendingMs: [0, 0], shuttingDownMs: [5_000, 5_000] } as const;
const ssh = (
  cidr: string,
): { IpPermissions: { IpProtocol: string; FromPort: number; ToPort: number; IpRanges: { CidrIp: string }[] }[] } => ({
  IpPermissions: [{ IpProtocol: 'tcp', FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: cidr }] }],
});
const create = ({ ec2 }: Clients, name: string): Promise<{ GroupId?: string | undefined }> =>
  ec2.send(new CreateSecurityGroupCommand({ GroupName: name, Description: 'of a test' }));

test('a group has a unique name per network, and cannot be deleted while used', async () => {
  const clock = new FakeClock();
  await withFakeAws({ clock, timing: quick }, async (_aws, clients) => {
    const { ec2 } = clients;
    const { GroupId: id = '' } = await create(clients, 'one');
    const { GroupId: other = '' } = await create(clients, 'two');
    expect(await outcomeOf(create(clients, 'one'))).toBe('InvalidGroup.Duplicate 400');
    const pair = { IpPermissions: [{ IpProtocol: '-1', UserIdGroupPairs: [{ GroupId: id }] }] };
    await ec2.send(new AuthorizeSecurityGroupIngressCommand({ GroupId: other, ...pair }));
    const remove = (): Promise<string> => outcomeOf(ec2.send(new DeleteSecurityGroupCommand({ GroupId: id })));
    expect(await remove()).toBe('DependencyViolation 400');
    await ec2.send(new RevokeSecurityGroupIngressCommand({ GroupId: other, ...pair }));
    const { Instances: launched = [] } = await ec2.send(new RunInstancesCommand(aLaunch({ SecurityGroupIds: [id] })));
    await ec2.send(new TerminateInstancesCommand({ InstanceIds: [launched[0]?.InstanceId ?? ''] }));
    expect(await remove()).toBe('DependencyViolation 400');
    await clock.advance(5_000);
    expect([await remove(), await remove()]).toEqual(['ok', 'InvalidGroup.NotFound 400']);
  });
});

test('a rule exists once, and is revoked by its original parameters', async () => {
  await withFakeAws({}, async (_aws, clients) => {
    const { ec2 } = clients;
    const { GroupId: id = '' } = await create(clients, 'one');
    const allow = (cidr: string): Promise<string> =>
      outcomeOf(ec2.send(new AuthorizeSecurityGroupIngressCommand({ GroupId: id, ...ssh(cidr) })));
    const revoke = (cidr: string): Promise<string> =>
      outcomeOf(ec2.send(new RevokeSecurityGroupIngressCommand({ GroupId: id, ...ssh(cidr) })));
    expect([await allow('192.0.2.1/32'), await allow('192.0.2.1/32'), await allow('192.0.2.1/24')]).toEqual([
      'ok',
      'InvalidPermission.Duplicate 400',
      'InvalidParameterValue 400',
    ]);
    expect(await allow('198.51.100.0/24')).toBe('ok');
    const { SecurityGroups: groups } = await ec2.send(new DescribeSecurityGroupsCommand({ GroupIds: [id] }));
    expect(groups?.[0]?.IpPermissions).toMatchObject([
      { FromPort: 22, IpRanges: [{ CidrIp: '192.0.2.1/32' }, { CidrIp: '198.51.100.0/24' }] },
    ]);
    const { SecurityGroupRules: rules } = await ec2.send(
      new DescribeSecurityGroupRulesCommand({ Filters: [{ Name: 'group-id', Values: [id] }] }),
    );
    expect(rules?.map((rule) => [rule.IsEgress, rule.CidrIpv4])).toEqual([
      [true, '0.0.0.0/0'],
      [false, '192.0.2.1/32'],
      [false, '198.51.100.0/24'],
    ]);
    expect([await revoke('192.0.2.1/32'), await revoke('192.0.2.1/32')]).toEqual(['ok', 'InvalidPermission.NotFound 400']);
    expect(await outcomeOf(ec2.send(new AuthorizeSecurityGroupIngressCommand({ GroupId: 'sg-00000000', ...ssh('192.0.2.1/32') })))).toBe(
      'InvalidGroup.NotFound 400',
    );
  });
});

test('new groups and keys are invisible to reads at first; their names are taken', async () => {
  const clock = new FakeClock();
  const invisibleMs = { instance: [0, 0], tag: [0, 0], group: [3_000, 3_000], key: [3_000, 3_000], iam: [0, 0] } as const;
  await withFakeAws({ clock, timing: { invisibleMs } }, async (_aws, clients) => {
    const { ec2 } = clients;
    const material = Buffer.from(
      `ssh-ed25519 ${Buffer.concat([Buffer.from([0, 0, 0, 11]), Buffer.from('ssh-ed25519'), Buffer.alloc(36)]).toString('base64')}`,
    );
    const importKey = (): Promise<unknown> => ec2.send(new ImportKeyPairCommand({ KeyName: 'k', PublicKeyMaterial: material }));
    await importKey();
    const { GroupId: id = '' } = await create(clients, 'one');
    const readGroup = (): Promise<string> => outcomeOf(ec2.send(new DescribeSecurityGroupsCommand({ GroupIds: [id] })));
    const readKey = (): Promise<string> => outcomeOf(ec2.send(new DescribeKeyPairsCommand({ KeyNames: ['k'] })));
    expect([await readGroup(), await readKey()]).toEqual(['InvalidGroup.NotFound 400', 'InvalidKeyPair.NotFound 400']);
    expect([await outcomeOf(create(clients, 'one')), await outcomeOf(importKey())]).toEqual([
      'InvalidGroup.Duplicate 400',
      'InvalidKeyPair.Duplicate 400',
    ]);
    await clock.advance(3_000);
    expect([await readGroup(), await readKey()]).toEqual(['ok', 'ok']);
    await ec2.send(new DeleteKeyPairCommand({ KeyName: 'k' }));
    expect(await outcomeOf(ec2.send(new DeleteKeyPairCommand({ KeyName: 'k' })))).toBe('ok');
    expect(await outcomeOf(ec2.send(new ImportKeyPairCommand({ KeyName: 'k', PublicKeyMaterial: Buffer.from('ssh-dss AAAA') })))).toBe(
      'InvalidKey.Format 400',
    );
  });
});

test('tags are found with wildcards, and are set on all resources or none', async () => {
  await withFakeAws({}, async (_aws, clients) => {
    const { ec2 } = clients;
    const { GroupId: id = '' } = await create(clients, 'one');
    const Tags = [{ Key: 'svc-service', Value: 'a.b*c' }];
    expect(await outcomeOf(ec2.send(new CreateTagsCommand({ Resources: [id, 'i-00000000'], Tags })))).toBe(
      'InvalidInstanceID.NotFound 400',
    );
    const found = async (value: string): Promise<number | undefined> => {
      const { SecurityGroups: groups } = await ec2.send(
        new DescribeSecurityGroupsCommand({ Filters: [{ Name: 'tag:svc-service', Values: [value] }] }),
      );
      return groups?.length;
    };
    expect(await found('*')).toBe(0);
    await ec2.send(new CreateTagsCommand({ Resources: [id], Tags }));
    expect([await found('a*'), await found('a?b\\*c'), await found('a.b'), await found('axb*')]).toEqual([1, 1, 0, 0]);
  });
});

test('a region has a default network with a subnet per zone, unless deleted', async () => {
  await withFakeAws({}, async (aws, { ec2 }) => {
    const { Vpcs: vpcs } = await ec2.send(new DescribeVpcsCommand({ Filters: [{ Name: 'is-default', Values: ['true'] }] }));
    const { Subnets: subnets } = await ec2.send(
      new DescribeSubnetsCommand({ Filters: [{ Name: 'vpc-id', Values: [vpcs?.[0]?.VpcId ?? ''] }] }),
    );
    expect(subnets?.map((one) => one.CidrBlock)).toEqual([0, 16, 32, 48, 64, 80].map((third) => `172.31.${third}.0/20`));
    aws.control.region('us-east-1').removeVpc(vpcs?.[0]?.VpcId ?? '');
    expect(await outcomeOf(ec2.send(new RunInstancesCommand(aLaunch())))).toBe('VPCIdNotSpecified 400');
    const own = aws.control.region('us-east-1').addVpc(false);
    const [subnet] = [...aws.control.region('us-east-1').subnets.values()].filter(({ vpcId }) => vpcId === own.id);
    expect(await outcomeOf(ec2.send(new RunInstancesCommand(aLaunch({ SubnetId: subnet?.id ?? '' }))))).toBe('ok');
  });
});

test('images are found by owner, name and architecture', async () => {
  await withFakeAws({}, async (_aws, { ec2 }) => {
    const Filters = [
      { Name: 'name', Values: ['ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-*-server-*'] },
      { Name: 'architecture', Values: ['arm64'] },
    ];
    const { Images: images } = await ec2.send(new DescribeImagesCommand({ Owners: ['099720109477'], Filters }));
    expect(images?.map(({ ImageId: id, RootDeviceName: root }) => [id, root])).toEqual([[ubuntuIn('us-east-1', 'arm64'), '/dev/sda1']]);
  });
});
