import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  endAwsPlace as end,
  instanceIdOf,
  refusalOf,
  smallOnAws,
  usedPermissions,
  withAwsPlace,
  withAwsPlaceOf,
  type AwsPlace,
} from '../../../test/support/aws-place.ts';
import type { MachineHost } from '../../../test/fakes/aws/machine-host.ts';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { MachineId, MachineSpec } from '../provider.ts';
import { impliedActions, userPolicy } from './iam-policy.ts';

const aService = { 'svc-service': 'chat', 'svc-service-key': 'abc123', 'svc-replica': '1', 'svc-key': 'k1' };

test('a machine has everything it needs and is tagged in all its parts', async () => {
  await withAwsPlace({}, async (place) => {
    const id = await place.create('k1', {
      tags: aService,
      labels: { team: 'ml' },
      ports: [8080, 8081, 9000],
      clients: ['198.51.100.7'],
      diskSizeGb: 50,
    });
    const [instance] = place.aws.control.instances;
    expect(instance?.metadataOptions).toMatchObject({ HttpTokens: 'required' });
    expect(Buffer.from(instance?.userData ?? '', 'base64').toString()).toContain('ssh_host_ed25519_key');
    expect(place.aws.control.volumes).toMatchObject([{ sizeGb: 50, type: 'gp3', iops: 3_500, throughput: 218 }]);
    const [group] = place.aws.control.groups;
    expect(group?.name).toBe('svc-abc123');
    expect(rulesOf(place)).toEqual(['22-22 198.51.100.7/32', '8080-8081 198.51.100.7/32', '9000-9000 198.51.100.7/32']);
    const tagged = place.aws.control.leftovers();
    expect(tagged.map(({ kind }) => kind).toSorted()).toEqual(['group', 'instance', 'key', 'volume']);
    expect(tagged.every(({ tags }) => tags['svc.home'] !== undefined)).toBe(true);
    expect(tagged.find(({ kind }) => kind === 'volume')?.tags).toMatchObject({ ...aService, team: 'ml', Name: 'chat-1' });
    await place.untilState(id, 'running');
    expect(await place.provider.list({ 'svc-key': 'k1' }, {})).toEqual([{ id, tags: aService }]);
    await end(place, 'abc123');
  });
});

test('without clients SSH is open to the address of this machine and ports to nobody', async () => {
  await withAwsPlace({}, async (place) => {
    await place.create('k1', { ports: [8080] });
    expect(rulesOf(place)).toEqual(['22-22 127.0.0.1/32']);
    place.configure({ sshFrom: ['203.0.113.0/24'] });
    await place.create('k1b', { tags: { 'svc-key': 'k1' }, ports: [8080] });
    expect(rulesOf(place)).toEqual(['22-22 127.0.0.1/32', '22-22 203.0.113.0/24']);
  });
});

test('endpoints of a controller are open to everybody and its SSH is not', async () => {
  await withAwsPlace({}, async (place) => {
    const id = await place.create('c1', { role: 'controller', ports: [30_001, 30_002], clients: ['0.0.0.0/0', '::/0'] });
    expect(rulesOf(place)).toEqual(['22-22 127.0.0.1/32', '30001-30002 0.0.0.0/0', '30001-30002 ::/0']);
    expect(place.aws.control.profiles).toHaveLength(1);
    expect(place.aws.control.instance(instanceIdOf(id)).instanceProfileArn).toContain('svc-controller-');
    await end(place, 'c1');
    expect(place.aws.control.roles).toEqual([]);
  });
});

test('a controller with a role of the configuration gets that one, and none is made', async () => {
  await withAwsPlace({ config: { controllerRole: 'no-such-profile' } }, async (place) => {
    const stop = new AbortController();
    const creating = place.provider.create(await place.offer(), aMachineSpec({ role: 'controller' }), 'c1', { signal: stop.signal });
    // It may be one that IAM knows and EC2 does not yet: it is asked again for a while.
    void waitFor('a machine to be asked for', () => place.aws.calls.some(({ action }) => action === 'RunInstances')).then(() =>
      stop.abort(),
    );
    await expect(creating).rejects.toThrow('aborted');
    expect(place.aws.control.roles).toEqual([]);
    expect(place.aws.control.instances).toEqual([]);
  });
});

function rulesOf({ aws }: AwsPlace): readonly string[] {
  const rules = aws.control.groups.flatMap((group) => [...group.rules.values()]).filter(({ fromPort }) => fromPort >= 0);
  return rules.map(({ fromPort, toPort, peer }) => `${fromPort}-${toPort} ${peer}`).toSorted();
}

test('spot machines are one-time, announce their end, and are preempted then', async () => {
  const clock = new FakeClock();
  await withAwsPlace({ clock }, async (place) => {
    const id = await place.create('k1', {}, { useSpot: true });
    await clock.advance(100);
    await place.untilState(id, 'running');
    expect(place.aws.control.spotRequests).toHaveLength(1);
    place.aws.control.interrupt(instanceIdOf(id));
    const notice = await waitFor('a notice', async () => {
      const status = (await place.provider.inspect([id], {})).get(id);
      return status?.state === 'running' && status.notice;
    });
    expect(notice).toMatchObject({ kind: 'interruption' });
    await clock.advance(120_000);
    await waitFor('the machine to be taken', async () => (await place.provider.inspect([id], {})).get(id)?.state === 'gone');
    expect((await place.provider.inspect([id], {})).get(id)).toEqual({ state: 'gone', reason: 'preempted' });
    await end(place, 'k1', () => clock.advance(100));
  });
});

test('a machine that a person terminates is deleted, not preempted', async () => {
  await withAwsPlace({}, async (place) => {
    const id = await place.create('k1');
    await place.untilState(id, 'running');
    place.aws.control.terminate(instanceIdOf(id));
    expect((await place.provider.inspect([id], {})).get(id)).toEqual({ state: 'gone', reason: 'deleted' });
  });
});

test('a replica that shuts itself down is deleted, a controller is stopped', async () => {
  await withAwsPlace({}, async (place) => {
    const [replica, controller] = [await place.create('r'), await place.create('c', { role: 'controller' })];
    for (const id of [replica, controller]) await place.untilState(id, 'running');
    for (const id of [replica, controller]) place.aws.control.powerOff(instanceIdOf(id));
    const statuses = await place.provider.inspect([replica, controller], {});
    expect([statuses.get(replica), statuses.get(controller)]).toEqual([{ state: 'gone', reason: 'deleted' }, { state: 'stopped' }]);
  });
});

test('a machine is stopped and comes back as the same; a spot machine is not stopped', async () => {
  await withAwsPlace({}, async (place) => {
    const { provider } = place;
    const id = await place.create('k1');
    await place.untilState(id, 'running');
    await provider.stop(id, {});
    await place.untilState(id, 'stopped');
    await provider.stop(id, {});
    await waitFor('the machine to have stopped', () => place.aws.control.instance(instanceIdOf(id)).state === 'stopped');
    await provider.start(id, {});
    await place.untilState(id, 'running');
    await provider.start(id, {});
    const spot = await place.create('k2', {}, { useSpot: true });
    await place.untilState(spot, 'running');
    await expect(provider.stop(spot, {})).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
  });
});

test('want of capacity when a stopped machine is started is said as that', async () => {
  await withAwsPlace({}, async (place) => {
    const id = await place.create('k1');
    await place.untilState(id, 'running');
    await place.provider.stop(id, {});
    await waitFor('the machine to have stopped', () => place.aws.control.instance(instanceIdOf(id)).state === 'stopped');
    place.aws.conduct.refuse({ action: 'StartInstances' }, 'InsufficientInstanceCapacity');
    await expect(place.provider.start(id, {})).rejects.toMatchObject({ code: 'SVC_CAPACITY', kind: 'capacity' });
  });
});

test('a key is good for a new machine when its first one is gone', async () => {
  await withAwsPlace({}, async (place) => {
    const first = await place.create('k1');
    await place.untilState(first, 'running');
    await place.provider.destroy(first, {});
    const second = await place.create('k1');
    expect(second).not.toBe(first);
    expect(await place.create('k1')).toBe(second);
    await place.untilState(second, 'running');
  });
});

test('a key whose request looks different today still gives its machine', async () => {
  await withAwsPlace(
    { timing: { invisibleMs: { instance: [300, 400], group: [0, 1], key: [0, 1], tag: [300, 400], iam: [0, 1] } } },
    async (place) => {
      const id = await place.create('k1', { labels: { a: '1' } });
      const again = await place
        .open()
        .create(await place.offer(), aMachineSpec({ tags: { 'svc-key': 'k1' }, labels: { a: '2' } }), 'k1', {});
      expect(again).toBe(id);
      expect(place.aws.control.instances).toHaveLength(1);
    },
  );
});

test('a machine that was asked for with a lost reply is the one that asking again gives', async () => {
  await withAwsPlace({}, async (place) => {
    // More often than a request is repeated by itself.
    place.aws.conduct.add({ action: 'RunInstances', times: 4 }, { kind: 'lose-reply' });
    await expect(place.create('k1')).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED', kind: 'transient' });
    expect(place.aws.control.instances).toHaveLength(1);
    const id = await place.create('k1');
    expect(instanceIdOf(id)).toBe(place.aws.control.instances[0]?.id);
    expect(place.aws.control.instances).toHaveLength(1);
  });
});

test('a GPU machine starts from the image with drivers, with a disk that holds it', async () => {
  await withAwsPlace({}, async (place) => {
    const gpu = someResources({ accelerator: { name: 'L4', count: 1 }, region: 'us-east-1', diskSizeGb: 20 });
    const [offer] = (await place.provider.offers(gpu, {})).offers;
    if (offer === undefined) throw new Error('no offer');
    const id = await place.provider.create(offer, aMachineSpec({ diskSizeGb: 20, diskTier: 'best' }), 'k1', {});
    const instance = place.aws.control.instance(instanceIdOf(id));
    expect(instance.image.name).toContain('Nvidia Driver');
    expect(place.aws.control.volumes).toMatchObject([{ sizeGb: instance.image.rootGb, type: 'io2', iops: 20_000 }]);
  });
});

test('where public parameters are not served, images are found by their publishers', async () => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.refuse({ service: 'ssm' }, 'UnknownOperationException');
    const id = await place.create('k1');
    expect(place.aws.control.instance(instanceIdOf(id)).image.name).toContain('ubuntu-noble-24.04-amd64');
  });
});

test('what image_id cannot be is said before anything is asked of AWS', async () => {
  await withAwsPlace({}, async (place) => {
    const wish = (imageId: MachineSpec['imageId']) => place.provider.offers(someResources({ ...smallOnAws, imageId }), {});
    expect((await wish('docker:ubuntu:24.04')).whyNone).toMatch(/docker:ubuntu.*without containers/);
    expect((await wish({ 'eu-west-1': 'ami-0123' })).whyNone).toMatch(/image_id names no image for us-east-1/);
    expect((await wish('ami-0123')).offers).toHaveLength(1);
    expect(place.aws.calls).toEqual([]);
  });
});

test('an image that is not there, or for other processors, is a refusal of the kind of machine there', async () => {
  await withAwsPlace({}, async (place) => {
    expect(await refusalOf(place.create('k1', { imageId: 'ami-00000000000000000' }))).toMatch(/^unsupported/);
  });
});

test('a configured VPC is found by name or id, and its zones are gone through', async () => {
  await withAwsPlace({}, async (place) => {
    const region = place.aws.control.region('us-east-1');
    const [vpc] = region.vpcs.values();
    if (vpc === undefined) throw new Error('no VPC');
    place.configure({ vpc: vpc.id });
    for (const zone of ['us-east-1a', 'us-east-1b', 'us-east-1c']) place.aws.control.supply.limitCapacity({ zone }, 0);
    const id = await place.create('k1');
    expect(['us-east-1d', 'us-east-1e', 'us-east-1f']).toContain(place.aws.control.instance(instanceIdOf(id)).zone);
    place.aws.control.supply.limitCapacity({}, 0);
    expect(await refusalOf(place.create('k2'))).toBe('capacity region');
    place.configure({ vpc: 'nobody-has-this' });
    expect(await refusalOf(place.create('k3'))).toBe('unsupported whole-region');
    expect(place.aws.control.instances).toHaveLength(1);
  });
});

test('a region without a default VPC is left out with what to do about it', async () => {
  await withAwsPlace({}, async (place) => {
    const region = place.aws.control.region('us-east-1');
    for (const id of region.vpcs.keys()) region.vpcs.delete(id);
    await expect(place.create('k1')).rejects.toMatchObject({
      scope: 'whole-region',
      hint: expect.stringContaining('create-default-vpc --region us-east-1'),
    });
  });
});

test('machines of several regions are inspected and listed together, and a silent region hides none of the others', async () => {
  await withAwsPlace({}, async (place) => {
    const ids: MachineId[] = [];
    for (const region of ['us-east-1', 'us-east-2', 'eu-west-1']) ids.push(await place.create(region, {}, { region }));
    for (const id of ids) await place.untilState(id, 'running');
    const before = place.aws.calls.length;
    const statuses = await place.provider.inspect(ids, {});
    expect(ids.map((id) => statuses.get(id)?.state)).toEqual(['running', 'running', 'running']);
    expect(place.aws.calls.length - before).toBe(3);
    expect(await place.provider.list({}, {})).toHaveLength(3);
    place.aws.control.terminate(instanceIdOf(ids[0] ?? fail()));
    place.aws.conduct.refuse({ region: 'eu-west-1' }, 'Unavailable');
    const later = await place.provider.inspect(ids, {});
    expect(ids.map((id) => later.get(id)?.state)).toEqual(['gone', 'running', 'running']);
    await expect(place.provider.list({}, {})).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED' });
  });
});

function fail(): never {
  throw new Error('missing');
}

test('another home neither sees nor removes what this one has', async () => {
  await withAwsPlace({}, async (mine) => {
    const id = await mine.create('k1', { tags: aService });
    await withAwsPlaceOf(mine, async (other) => {
      expect(await other.provider.list({}, {})).toEqual([]);
      await other.provider.release('abc123', {});
    });
    await mine.untilState(id, 'running');
    expect(mine.aws.control.groups).toHaveLength(1);
  });
});

test('release waits for machines that are going away and takes nothing of other owners', async () => {
  const clock = new FakeClock();
  await withAwsPlace({ clock }, async (place) => {
    const [a] = [
      await place.create('a', { tags: { 'svc-service-key': 'one', 'svc-key': 'a' } }),
      await place.create('b', { tags: { 'svc-service-key': 'two', 'svc-key': 'b' } }),
    ];
    await place.provider.destroy(a, {});
    await expect(place.provider.release('one', {})).rejects.toMatchObject({ code: 'SVC_PLACE_FAILED', kind: 'transient' });
    await clock.advance(100);
    await place.provider.release('one', {});
    expect(place.aws.control.groups.map(({ name }) => name)).toEqual(['svc-two']);
    expect(place.aws.control.keyPairs).toHaveLength(1);
    await end(place, 'two', () => clock.advance(100));
  });
});

test('a key pair that another process removed just now is imported again', async () => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.add({ action: 'RunInstances', times: 1 }, { kind: 'error', code: 'InvalidKeyPair.NotFound', status: 400 });
    const id = await place.create('k1');
    expect(instanceIdOf(id)).toMatch(/^i-/);
    expect(place.aws.calls.filter(({ action }) => action === 'ImportKeyPair')).toHaveLength(2);
  });
});

test('volumes that a machine left behind go with the owner', async () => {
  await withAwsPlace({}, async (place) => {
    const id = await place.create('k1');
    await place.untilState(id, 'running');
    const region = place.aws.control.region('us-east-1');
    const [volume] = region.volumes.values();
    if (volume === undefined) throw new Error('no volume');
    await place.provider.destroy(id, {});
    await waitFor('the volume to go with its machine', () => region.volumes.size === 0);
    region.volumes.set(volume.id, { ...volume, attachment: undefined });
    expect(place.aws.control.volumes).toHaveLength(1);
    await end(place, 'k1');
  });
});

test('a machine is worked on over SSH as the user of its image, and boots until it can be', async () => {
  const machines: MachineHost = {
    // Nobody listens there who has the machine's host key.
    launch: () => Promise.resolve({ publicIp: '127.0.0.9', privateIp: '127.0.0.9' }),
    stop: () => Promise.resolve(),
    start: () => Promise.resolve({ publicIp: '127.0.0.9', privateIp: '127.0.0.9' }),
    terminate: () => Promise.resolve(),
  };
  await withAwsPlace({ machines }, async (place) => {
    expect((await place.provider.check({})).enabled).toBe(true);
    const id = await place.create('k1');
    const real = place.openReal();
    expect(real.remote(id).baseDir).toBe('/home/ubuntu/svc');
    await place.untilState(id, 'running');
    expect((await place.provider.inspect([id], {})).get(id)).toEqual({ state: 'running', host: '127.0.0.9' });
    expect((await real.inspect([id], {})).get(id)).toEqual({ state: 'booting' });
    await expect(real.remote(id).exec(['true'])).rejects.toMatchObject({ code: expect.stringMatching(/^SVC_(?:SSH|HOST_KEY)$/) });
    await place.provider.destroy(id, {});
    const later = place.openReal();
    await expect(later.remote(id).exec(['true'])).rejects.toMatchObject({ code: 'SVC_MACHINE_LOST' });
  });
});

test('a cancelled call ends as cancelled', async () => {
  await withAwsPlace({}, async (place) => {
    place.aws.conduct.add({ service: 'ec2' }, { kind: 'delay', ms: 60_000 });
    const offer = await place.offer();
    const stop = new AbortController();
    const creating = place.provider.create(offer, aMachineSpec(), 'k1', { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(creating).rejects.toThrow('enough');
  });
});

test('the documented policy allows what all of the above asked for, and nothing else', () => {
  const allowed = userPolicy.Statement.flatMap(({ Action }) => Action).filter(
    (action) => !action.startsWith('s3:') && !impliedActions.includes(action),
  );
  expect(allowed.toSorted()).toEqual([...usedPermissions].filter((permission) => !permission.startsWith('s3:')).toSorted());
});

test('the page of AWS shows that policy', () => {
  const page = readFileSync('docs/clouds/aws.md', 'utf8');
  const shown = [...page.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']): unknown => JSON.parse(text));
  expect(shown).toContainEqual(userPolicy);
});
