import { expect, test } from 'vitest';
import type { MachineBackend } from '../../../test/fakes/aws/machine-backend.ts';
import {
  instanceIdOf,
  moveMachine,
  refusalOf,
  rulesOf,
  withAwsProvider,
  type AwsProviderFixture,
} from '../../../test/support/aws-provider.ts';
import { aMachineSpec } from '../../../test/support/builders.ts';
import { needs } from '../../../test/support/needs.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';

/** Addresses of a new running machine. */
async function addresses(fixture: AwsProviderFixture, key: string, resources?: Partial<Resources>) {
  const instance = fixture.aws.control.instance(instanceIdOf(await fixture.create(key, {}, resources)));
  await waitFor('the machine to run', () => instance.state === 'running');
  return { isPublic: instance.publicIp !== undefined, isPrivate: instance.privateIp !== undefined, subnetId: instance.subnetId };
}

const both = { isPublic: true, isPrivate: true };
const internal = { isPublic: false, isPrivate: true };

test.for([
  ['on demand', {}],
  ['spot', { useSpot: true }],
  ['in a zone', { zone: 'us-east-1c' }],
] as const)('with use_internal_ips a machine of the default VPC has no public address: %s', async ([, resources]) => {
  await withAwsProvider({}, async (fixture) => {
    expect(await addresses(fixture, 'k1', resources)).toMatchObject(both);
    fixture.configure({ useInternalIps: true });
    expect(await addresses(fixture, 'k2', resources)).toMatchObject(internal);
  });
});

test('a controller on AWS with use_internal_ips has no public address', async () => {
  await withAwsProvider({ config: { useInternalIps: true } }, async (fixture) => {
    const id = await fixture.create('c1', { role: 'controller' });
    await fixture.untilState(id, 'running');
    expect(fixture.aws.control.instance(instanceIdOf(id)).publicIp).toBeUndefined();
  });
});

test('a machine gets a public address in subnets that assign none automatically', async () => {
  await withAwsProvider({}, async (fixture) => {
    const region = fixture.aws.control.region('us-east-1');
    for (const subnet of region.subnets.values()) subnet.publicIps = false;
    expect(await addresses(fixture, 'k1')).toMatchObject(both);
    fixture.configure({ vpc: region.addVpc(false).id });
    expect(await addresses(fixture, 'k2')).toMatchObject(both);
    fixture.configure({ useInternalIps: true });
    expect(await addresses(fixture, 'k3')).toMatchObject(internal);
  });
});

test('a stopped and restarted machine keeps its kind of address', async () => {
  await withAwsProvider({ config: { useInternalIps: true } }, async (fixture) => {
    const id = await fixture.create('k1');
    await fixture.untilState(id, 'running');
    await fixture.provider.stop(id, {});
    await waitFor('the machine to have stopped', () => fixture.aws.control.instance(instanceIdOf(id)).state === 'stopped');
    await fixture.provider.start(id, {});
    await waitFor('the machine to run', () => fixture.aws.control.instance(instanceIdOf(id)).state === 'running');
    expect(fixture.aws.control.instance(instanceIdOf(id)).publicIp).toBeUndefined();
  });
});

test('IPv6-only subnets of a named VPC are skipped', async () => {
  await withAwsProvider({}, async (fixture) => {
    const region = fixture.aws.control.region('us-east-1');
    const vpc = region.addVpc(false);
    fixture.configure({ vpc: vpc.id });
    const [first, ...others] = [...region.subnets.values()].filter(({ vpcId }) => vpcId === vpc.id);
    for (const subnet of others) subnet.ipv6Only = true;
    for (const key of ['k1', 'k2', 'k3']) expect(await addresses(fixture, key)).toMatchObject({ ...both, subnetId: first?.id });
    if (first !== undefined) first.ipv6Only = true;
    // A new provider object, because the old one caches the subnets for a minute.
    const offer = await fixture.offer();
    expect(await refusalOf(fixture.open().create(offer, aMachineSpec({}), 'k4', {}))).toBe('unsupported whole-region');
  });
});

test('a group that is not known yet, or was removed, does not end a launch', async () => {
  await withAwsProvider({}, async (fixture) => {
    for (const action of ['AuthorizeSecurityGroupIngress', 'RunInstances'])
      fixture.aws.conduct.add({ action, times: 1 }, { kind: 'error', code: 'InvalidSecurityGroupID.NotFound', status: 400 });
    await fixture.create('k1');
    // A person removes it in the console.
    for (const { groups } of [fixture.aws.control.region('us-east-1')]) groups.clear();
    await fixture.create('k1b', { tags: { 'svc-key': 'k1' } });
    expect(rulesOf(fixture)).toEqual(['22-22 127.0.0.1/32']);
    expect(fixture.aws.control.instances).toHaveLength(2);
  });
});

/** Machines that no connection reaches: for TCP, the kernel itself refuses the broadcast address. */
const unreachable: MachineBackend = {
  launch: () => Promise.resolve({ publicIp: '255.255.255.255', privateIp: '255.255.255.255' }),
  stop: () => Promise.resolve(),
  start: () => Promise.resolve({ publicIp: '255.255.255.255', privateIp: '255.255.255.255' }),
  terminate: () => Promise.resolve(),
};

needs('ssh', () => {
  test.for<readonly [what: string, config: Partial<AwsConfig>, rules: readonly string[]]>([
    ['its present address', {}, ['22-22 127.0.0.1/32']],
    ['the configured ranges', { sshFrom: ['203.0.113.0/24'] }, ['22-22 198.51.100.9/32', '22-22 203.0.113.0/24']],
    ['nothing else within the network', { useInternalIps: true }, ['22-22 198.51.100.9/32']],
  ])('after this machine moved, a failed connection opens SSH to %s', async ([, config, rules]) => {
    await withAwsProvider({ machines: unreachable }, async (fixture) => {
      const id = await fixture.create('k1');
      await fixture.untilState(id, 'running');
      moveMachine(fixture);
      fixture.configure(config);
      const later = fixture.openReal();
      await expect(later.remote(id).exec(['true'])).rejects.toMatchObject({ code: 'SVC_SSH' });
      expect(rulesOf(fixture)).toEqual(rules);
      // At most once a minute.
      const calls = (): number => fixture.aws.calls.filter(({ action }) => action.endsWith('SecurityGroups')).length;
      const before = calls();
      await expect(later.remote(id).exec(['true'])).rejects.toMatchObject({ code: 'SVC_SSH' });
      expect(calls()).toBe(before);
    });
  });

  test('a missing right to open SSH leaves the error of the connection', async () => {
    await withAwsProvider({ machines: unreachable }, async (fixture) => {
      const id = await fixture.create('k1');
      await fixture.untilState(id, 'running');
      moveMachine(fixture);
      fixture.aws.conduct.refuse({ action: 'AuthorizeSecurityGroupIngress' }, 'UnauthorizedOperation');
      await expect(fixture.openReal().remote(id).exec(['true'])).rejects.toMatchObject({ code: 'SVC_SSH' });
      expect(rulesOf(fixture)).toEqual(['22-22 198.51.100.9/32']);
    });
  });
});
