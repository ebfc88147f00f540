import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  cleanUpAwsProvider as end,
  instanceIdOf,
  moveMachine,
  refusalOf,
  rulesOf,
  smallOnAws,
  usedPermissions,
  withAwsProvider,
  withSecondAwsProvider,
} from '../../../test/support/aws-provider.ts';
import type { MachineBackend } from '../../../test/fakes/aws/machine-backend.ts';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { MachineId, MachineSpec } from '../provider.ts';
import { impliedActions, userPolicy } from './instance-profile.ts';

const aService = { 'svc-service': 'chat', 'svc-service-key': 'abc123', 'svc-replica': '1', 'svc-key': 'k1' };

test('a created machine has the requested settings, and all its resources are tagged', async () => {
  await withAwsProvider({}, async (fixture) => {
    const id = await fixture.create('k1', {
      tags: aService,
      labels: { team: 'ml' },
      ports: [8080, 8081, 9000],
      clients: ['198.51.100.7'],
      diskSizeGb: 50,
    });
    const [instance] = fixture.aws.control.instances;
    expect(instance?.metadataOptions).toMatchObject({ HttpTokens: 'required' });
    expect(Buffer.from(instance?.userData ?? '', 'base64').toString()).toContain('ssh_host_ed25519_key');
    expect(fixture.aws.control.volumes).toMatchObject([{ sizeGb: 50, type: 'gp3', iops: 3_500, throughput: 218 }]);
    const [group] = fixture.aws.control.groups;
    expect(group?.name).toBe('svc-abc123');
    expect(rulesOf(fixture)).toEqual(['22-22 198.51.100.7/32', '8080-8081 198.51.100.7/32', '9000-9000 198.51.100.7/32']);
    const tagged = fixture.aws.control.leftovers();
    expect(tagged.map(({ kind }) => kind).toSorted()).toEqual(['group', 'instance', 'key', 'volume']);
    expect(tagged.every(({ tags }) => tags['svc.home'] !== undefined)).toBe(true);
    expect(tagged.find(({ kind }) => kind === 'volume')?.tags).toMatchObject({ ...aService, team: 'ml', Name: 'chat-1' });
    await fixture.untilState(id, 'running');
    expect(await fixture.provider.list({ 'svc-key': 'k1' }, {})).toEqual([{ id, tags: aService }]);
    await end(fixture, 'abc123');
  });
});

test('without clients, SSH is open to this machine only and ports are closed', async () => {
  await withAwsProvider({}, async (fixture) => {
    await fixture.create('k1', { ports: [8080] });
    expect(rulesOf(fixture)).toEqual(['22-22 127.0.0.1/32']);
    fixture.configure({ sshFrom: ['203.0.113.0/24'] });
    await fixture.create('k1b', { tags: { 'svc-key': 'k1' }, ports: [8080] });
    expect(rulesOf(fixture)).toEqual(['22-22 127.0.0.1/32', '22-22 203.0.113.0/24']);
  });
});

test('a launch from a new address opens SSH to it, and closes it to the former', async () => {
  await withAwsProvider({}, async (fixture) => {
    await fixture.create('k1');
    moveMachine(fixture);
    expect(rulesOf(fixture)).toEqual(['22-22 198.51.100.9/32']);
    await fixture.create('k1b', { tags: { 'svc-key': 'k1' }, clients: ['192.0.2.1'] });
    await fixture.create('k1c', { tags: { 'svc-key': 'k1' } });
    expect(rulesOf(fixture)).toEqual(['22-22 127.0.0.1/32', '22-22 192.0.2.1/32']);
  });
});

test('controller endpoints are open to all addresses, and its SSH is not', async () => {
  await withAwsProvider({}, async (fixture) => {
    const id = await fixture.create('c1', { role: 'controller', ports: [30_001, 30_002], clients: ['0.0.0.0/0', '::/0'] });
    expect(rulesOf(fixture)).toEqual(['22-22 127.0.0.1/32', '30001-30002 0.0.0.0/0', '30001-30002 ::/0']);
    expect(fixture.aws.control.profiles).toHaveLength(1);
    expect(fixture.aws.control.instance(instanceIdOf(id)).instanceProfileArn).toContain('svc-controller-');
    await end(fixture, 'c1');
    expect(fixture.aws.control.roles).toEqual([]);
  });
});

test('a controller uses the configured role, and no role is created', async () => {
  await withAwsProvider({ config: { controllerRole: 'no-such-profile' } }, async (fixture) => {
    const stop = new AbortController();
    const creating = fixture.provider.create(await fixture.offer(), aMachineSpec({ role: 'controller' }), 'c1', { signal: stop.signal });
    // IAM may know the profile before EC2 does, so the provider retries for a while.
    void waitFor('a machine to be asked for', () => fixture.aws.calls.some(({ action }) => action === 'RunInstances')).then(() =>
      stop.abort(),
    );
    await expect(creating).rejects.toThrow('aborted');
    expect(fixture.aws.control.roles).toEqual([]);
    expect(fixture.aws.control.instances).toEqual([]);
  });
});

test('a spot machine is one-time, gets an interruption notice, and becomes preempted', async () => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async (fixture) => {
    const id = await fixture.create('k1', {}, { useSpot: true });
    await clock.advance(100);
    await fixture.untilState(id, 'running');
    expect(fixture.aws.control.spotRequests).toHaveLength(1);
    fixture.aws.control.interrupt(instanceIdOf(id));
    const notice = await waitFor('a notice', async () => {
      const status = (await fixture.provider.inspect([id], {})).get(id);
      return status?.state === 'running' && status.notice;
    });
    expect(notice).toMatchObject({ kind: 'interruption' });
    await clock.advance(120_000);
    await waitFor('the machine to be taken', async () => (await fixture.provider.inspect([id], {})).get(id)?.state === 'gone');
    expect((await fixture.provider.inspect([id], {})).get(id)).toMatchObject({
      state: 'gone',
      reason: 'preempted',
      message: 'Server.SpotInstanceTermination: Spot instance termination',
    });
    await end(fixture, 'k1', () => clock.advance(100));
  });
});

test('a machine that a user terminates is deleted, not preempted', async () => {
  await withAwsProvider({}, async (fixture) => {
    const id = await fixture.create('k1');
    await fixture.untilState(id, 'running');
    fixture.aws.control.terminate(instanceIdOf(id));
    expect((await fixture.provider.inspect([id], {})).get(id)).toMatchObject({ state: 'gone', reason: 'deleted' });
  });
});

test('a replica that shuts itself down is deleted; a controller is stopped', async () => {
  await withAwsProvider({}, async (fixture) => {
    const [replica, controller] = [await fixture.create('r'), await fixture.create('c', { role: 'controller' })];
    for (const id of [replica, controller]) await fixture.untilState(id, 'running');
    for (const id of [replica, controller]) fixture.aws.control.powerOff(instanceIdOf(id));
    const statuses = await fixture.provider.inspect([replica, controller], {});
    expect([statuses.get(replica), statuses.get(controller)]).toMatchObject([{ state: 'gone', reason: 'deleted' }, { state: 'stopped' }]);
  });
});

test('a stopped machine starts again with the same id; a spot machine cannot stop', async () => {
  await withAwsProvider({}, async (fixture) => {
    const { provider } = fixture;
    const id = await fixture.create('k1');
    await fixture.untilState(id, 'running');
    await provider.stop(id, {});
    await fixture.untilState(id, 'stopped');
    await provider.stop(id, {});
    await waitFor('the machine to have stopped', () => fixture.aws.control.instance(instanceIdOf(id)).state === 'stopped');
    await provider.start(id, {});
    await fixture.untilState(id, 'running');
    await provider.start(id, {});
    const spot = await fixture.create('k2', {}, { useSpot: true });
    await fixture.untilState(spot, 'running');
    await expect(provider.stop(spot, {})).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
  });
});

test('a capacity shortage at the start of a stopped machine is SVC_CAPACITY', async () => {
  await withAwsProvider({}, async (fixture) => {
    const id = await fixture.create('k1');
    await fixture.untilState(id, 'running');
    await fixture.provider.stop(id, {});
    await waitFor('the machine to have stopped', () => fixture.aws.control.instance(instanceIdOf(id)).state === 'stopped');
    fixture.aws.conduct.refuse({ action: 'StartInstances' }, 'InsufficientInstanceCapacity');
    await expect(fixture.provider.start(id, {})).rejects.toMatchObject({ code: 'SVC_CAPACITY', kind: 'capacity' });
  });
});

test('a key yields a new machine after its first machine is destroyed', async () => {
  await withAwsProvider({}, async (fixture) => {
    const first = await fixture.create('k1');
    await fixture.untilState(first, 'running');
    await fixture.provider.destroy(first, {});
    const second = await fixture.create('k1');
    expect(second).not.toBe(first);
    expect(await fixture.create('k1')).toBe(second);
    await fixture.untilState(second, 'running');
  });
});

test('a key returns its machine although the new request has other labels', async () => {
  await withAwsProvider(
    { timing: { invisibleMs: { instance: [300, 400], group: [0, 1], key: [0, 1], tag: [300, 400], iam: [0, 1] } } },
    async (fixture) => {
      const id = await fixture.create('k1', { labels: { a: '1' } });
      const again = await fixture
        .open()
        .create(await fixture.offer(), aMachineSpec({ tags: { 'svc-key': 'k1' }, labels: { a: '2' } }), 'k1', {});
      expect(again).toBe(id);
      expect(fixture.aws.control.instances).toHaveLength(1);
    },
  );
});

test('after a lost reply, a repeated create returns the machine already launched', async () => {
  await withAwsProvider({}, async (fixture) => {
    // More often than the provider retries a request.
    fixture.aws.conduct.add({ action: 'RunInstances', times: 4 }, { kind: 'lose-reply' });
    await expect(fixture.create('k1')).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED', kind: 'transient' });
    expect(fixture.aws.control.instances).toHaveLength(1);
    const id = await fixture.create('k1');
    expect(instanceIdOf(id)).toBe(fixture.aws.control.instances[0]?.id);
    expect(fixture.aws.control.instances).toHaveLength(1);
  });
});

test('a GPU machine uses the driver image and a disk that holds it', async () => {
  await withAwsProvider({}, async (fixture) => {
    const gpu = someResources({ accelerator: { name: 'L4', count: 1 }, region: 'us-east-1', diskSizeGb: 20 });
    const [offer] = (await fixture.provider.offers(gpu, {})).offers;
    if (offer === undefined) throw new Error('no offer');
    const id = await fixture.provider.create(offer, aMachineSpec({ diskSizeGb: 20, diskTier: 'best' }), 'k1', {});
    const instance = fixture.aws.control.instance(instanceIdOf(id));
    expect(instance.image.name).toContain('Nvidia Driver');
    expect(fixture.aws.control.volumes).toMatchObject([{ sizeGb: instance.image.rootGb, type: 'io2', iops: 20_000 }]);
  });
});

test('without public parameters in a region, images are found by publisher', async () => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.conduct.refuse({ service: 'ssm' }, 'UnknownOperationException');
    const id = await fixture.create('k1');
    expect(fixture.aws.control.instance(instanceIdOf(id)).image.name).toContain('ubuntu-noble-24.04-amd64');
  });
});

test('an invalid image_id is reported before any request to AWS', async () => {
  await withAwsProvider({}, async (fixture) => {
    const offersFor = (imageId: MachineSpec['imageId']) => fixture.provider.offers(someResources({ ...smallOnAws, imageId }), {});
    expect((await offersFor('docker:ubuntu:24.04')).whyNone).toMatch(/docker:ubuntu.*without containers/);
    expect((await offersFor({ 'eu-west-1': 'ami-0123' })).whyNone).toMatch(/image_id names no image for us-east-1/);
    expect((await offersFor('ami-0123')).offers).toHaveLength(1);
    expect(fixture.aws.calls).toEqual([]);
  });
});

test('a create with a missing image is refused as unsupported', async () => {
  await withAwsProvider({}, async (fixture) => {
    expect(await refusalOf(fixture.create('k1', { imageId: 'ami-00000000000000000' }))).toMatch(/^unsupported/);
  });
});

test('a configured VPC is found by id, and its zones are tried', async () => {
  await withAwsProvider({}, async (fixture) => {
    const region = fixture.aws.control.region('us-east-1');
    const [vpc] = region.vpcs.values();
    if (vpc === undefined) throw new Error('no VPC');
    fixture.configure({ vpc: vpc.id });
    for (const zone of ['us-east-1a', 'us-east-1b', 'us-east-1c']) fixture.aws.control.supply.limitCapacity({ zone }, 0);
    const id = await fixture.create('k1');
    expect(['us-east-1d', 'us-east-1e', 'us-east-1f']).toContain(fixture.aws.control.instance(instanceIdOf(id)).zone);
    fixture.aws.control.supply.limitCapacity({}, 0);
    expect(await refusalOf(fixture.create('k2'))).toBe('capacity region');
    fixture.configure({ vpc: 'nobody-has-this' });
    expect(await refusalOf(fixture.create('k3'))).toBe('unsupported whole-region');
    expect(fixture.aws.control.instances).toHaveLength(1);
  });
});

test('a region without a default VPC is refused with a remedy', async () => {
  await withAwsProvider({}, async (fixture) => {
    const region = fixture.aws.control.region('us-east-1');
    for (const id of region.vpcs.keys()) region.vpcs.delete(id);
    await expect(fixture.create('k1')).rejects.toMatchObject({
      scope: 'whole-region',
      hint: expect.stringContaining('create-default-vpc --region us-east-1'),
    });
  });
});

test('machines of several regions are inspected together; a failing region hides no others', async () => {
  await withAwsProvider({}, async (fixture) => {
    const ids: MachineId[] = [];
    for (const region of ['us-east-1', 'us-east-2', 'eu-west-1']) ids.push(await fixture.create(region, {}, { region }));
    for (const id of ids) await fixture.untilState(id, 'running');
    const before = fixture.aws.calls.length;
    const statuses = await fixture.provider.inspect(ids, {});
    expect(ids.map((id) => statuses.get(id)?.state)).toEqual(['running', 'running', 'running']);
    expect(fixture.aws.calls.length - before).toBe(3);
    expect(await fixture.provider.list({}, {})).toHaveLength(3);
    fixture.aws.control.terminate(instanceIdOf(ids[0] ?? fail()));
    fixture.aws.conduct.refuse({ region: 'eu-west-1' }, 'Unavailable');
    const later = await fixture.provider.inspect(ids, {});
    expect(ids.map((id) => later.get(id)?.state)).toEqual(['gone', 'running', 'running']);
    await expect(fixture.provider.list({}, {})).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED' });
  });
});

function fail(): never {
  throw new Error('missing');
}

test('another home neither lists nor releases the machines of this home', async () => {
  await withAwsProvider({}, async (mine) => {
    const id = await mine.create('k1', { tags: aService });
    await withSecondAwsProvider(mine, async (other) => {
      expect(await other.provider.list({}, {})).toEqual([]);
      await other.provider.release('abc123', {});
    });
    await mine.untilState(id, 'running');
    expect(mine.aws.control.groups).toHaveLength(1);
  });
});

test('release waits for terminating machines and removes nothing of other owners', async () => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async (fixture) => {
    const [a] = [
      await fixture.create('a', { tags: { 'svc-service-key': 'one', 'svc-key': 'a' } }),
      await fixture.create('b', { tags: { 'svc-service-key': 'two', 'svc-key': 'b' } }),
    ];
    await fixture.provider.destroy(a, {});
    await expect(fixture.provider.release('one', {})).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED', kind: 'transient' });
    await clock.advance(100);
    await fixture.provider.release('one', {});
    expect(fixture.aws.control.groups.map(({ name }) => name)).toEqual(['svc-two']);
    expect(fixture.aws.control.keyPairs).toHaveLength(1);
    await end(fixture, 'two', () => clock.advance(100));
  });
});

test('a key pair that another process just removed is imported again', async () => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.conduct.add({ action: 'RunInstances', times: 1 }, { kind: 'error', code: 'InvalidKeyPair.NotFound', status: 400 });
    const id = await fixture.create('k1');
    expect(instanceIdOf(id)).toMatch(/^i-/);
    expect(fixture.aws.calls.filter(({ action }) => action === 'ImportKeyPair')).toHaveLength(2);
  });
});

test('release removes volumes that a terminated machine left behind', async () => {
  await withAwsProvider({}, async (fixture) => {
    const id = await fixture.create('k1');
    await fixture.untilState(id, 'running');
    const region = fixture.aws.control.region('us-east-1');
    const [volume] = region.volumes.values();
    if (volume === undefined) throw new Error('no volume');
    await fixture.provider.destroy(id, {});
    await waitFor('the volume to go with its machine', () => region.volumes.size === 0);
    region.volumes.set(volume.id, { ...volume, attachment: undefined });
    expect(fixture.aws.control.volumes).toHaveLength(1);
    await end(fixture, 'k1');
  });
});

test('a machine boots until SSH works, as the user of its image', async () => {
  const machines: MachineBackend = {
    // No server at this address has the machine's host key.
    launch: () => Promise.resolve({ publicIp: '127.0.0.9', privateIp: '127.0.0.9' }),
    stop: () => Promise.resolve(),
    start: () => Promise.resolve({ publicIp: '127.0.0.9', privateIp: '127.0.0.9' }),
    terminate: () => Promise.resolve(),
  };
  await withAwsProvider({ machines }, async (fixture) => {
    expect((await fixture.provider.check({})).enabled).toBe(true);
    const id = await fixture.create('k1');
    const real = fixture.openReal();
    expect(real.remote(id).baseDir).toBe('/home/ubuntu/svc');
    await fixture.untilState(id, 'running');
    expect((await fixture.provider.inspect([id], {})).get(id)).toEqual({ state: 'running', host: '127.0.0.9' });
    expect((await real.inspect([id], {})).get(id)).toEqual({ state: 'booting' });
    await expect(real.remote(id).exec(['true'])).rejects.toMatchObject({ code: expect.stringMatching(/^SVC_(?:SSH|HOST_KEY)$/) });
    await fixture.provider.destroy(id, {});
    const later = fixture.openReal();
    await expect(later.remote(id).exec(['true'])).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST' });
  });
});

test('a cancelled create rejects with the abort reason', async () => {
  await withAwsProvider({}, async (fixture) => {
    fixture.aws.conduct.add({ service: 'ec2' }, { kind: 'delay', ms: 60_000 });
    const offer = await fixture.offer();
    const stop = new AbortController();
    const creating = fixture.provider.create(offer, aMachineSpec(), 'k1', { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(creating).rejects.toThrow('enough');
  });
});

test('the documented policy allows exactly the actions that these tests requested', () => {
  const allowed = userPolicy.Statement.flatMap(({ Action }) => Action).filter(
    (action) => !action.startsWith('s3:') && !impliedActions.includes(action),
  );
  expect(allowed.toSorted()).toEqual([...usedPermissions].filter((permission) => !permission.startsWith('s3:')).toSorted());
});

test('docs/clouds/aws.md contains the policy', () => {
  const page = readFileSync('docs/clouds/aws.md', 'utf8');
  const shown = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']): unknown => JSON.parse(text));
  expect(shown).toContainEqual(userPolicy);
});
