import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ReplicaView, ServiceView } from '../../src/api/contract.ts';
import { killProcessesOf } from '../support/leaks.ts';
import { report } from '../support/figures.ts';
import { waitFor } from '../support/wait-for.ts';
import type { TestSshHost } from '../testbed/hosts/test-hosts.ts';
import { configure, describeCloud, instanceOf, nothingLeft, regions, webFiles, withCloud, type CloudWorld } from './cloud-world.ts';
import { leftOn } from './host-leftovers.ts';
import { Requests, type Figures } from '../support/requests.ts';

/** Longer than the minute for which an SSH host is cut off, seconds. */
const failingSeconds = 75;

/** Restarts a controller when its SSH host boots; without cron the next command restarts it. */
const hasCron = existsSync('/usr/sbin/cron');

/** A service for AWS, region by region, with capacity for one machine each, and then for the user's own SSH host. */
function writeFiles({ svc, aws, hosts }: CloudWorld, desk: TestSshHost, box: TestSshHost): string {
  const pool = (name: string, { ip, user }: TestSshHost): string =>
    `${name}: {user: ${user}, identity_file: ${hosts.key}, hosts: [${ip}]}\n`;
  writeFileSync(join(svc.home, 'ssh_pools.yaml'), pool('rack', desk) + pool('shelf', box));
  configure(svc, 'serve:\n  controller:\n    resources:\n      infra: ssh/rack\n      cpus: 1+\n      disk_size: 1\n');
  for (const region of Object.keys(regions)) aws.control.supply.limitCapacity({ region }, 1);
  const cloud = Object.keys(regions).map((region) => `    - {infra: aws/${region}, instance_type: t3a.medium}`);
  const probe = ['  readiness_probe:', '    path: /', `    consecutive_failure_threshold_timeout: ${failingSeconds}`];
  // The machine that is cut off for a minute must come back.
  const policy = ['  replica_policy:', '    min_replicas: 4', '    early_replacement: false'];
  return webFiles(svc, policy, ['  ordered:', ...cloud, '    - infra: ssh/shelf'], probe);
}

const inRegion = (service: ServiceView, region: string): ReplicaView => {
  const found = service.replicas.find((one) => one.region === region && one.status === 'READY');
  if (found === undefined) throw new Error(`no ready replica in ${region}`);
  return found;
};

/** The world of the test with its load and the controller host. */
interface Scene extends CloudWorld {
  readonly load: Requests;
  readonly desk: TestSshHost;
}

/** Runs `fault` under load, and reports its cost. */
async function underLoad(what: string, { load }: Scene, fault: () => Promise<void>): Promise<Figures> {
  const at = Date.now();
  await fault();
  const figures = load.figuresSince(at);
  const [took, gap, slowest] = [Date.now() - at, figures.gapMs, figures.slowestMs].map((ms) => (ms / 1_000).toFixed(1));
  report(`${what}: ${took} s, no answer for at most ${gap} s, slowest ${slowest} s, ${JSON.stringify(figures.outcomes)}`);
  return figures;
}

async function answersFrom({ load }: Scene, id: number): Promise<void> {
  const since = Date.now();
  await waitFor(`an answer of replica ${id}`, () => load.repliesSince(since).has(`replica ${id}`));
}

const pass = (ms: number): Promise<unknown> => {
  const at = Date.now();
  return waitFor('time to pass', () => Date.now() - at > ms, { timeoutMs: 2 * ms });
};

/** Removes the processes and the files of the client while `use` runs. */
async function withoutClient({ svc }: CloudWorld, use: () => Promise<void>): Promise<void> {
  await killProcessesOf(svc.home);
  const movedHome = `${svc.home}-away`;
  renameSync(svc.home, movedHome);
  try {
    await use();
  } finally {
    renameSync(movedHome, svc.home);
  }
}

const readyIds = ({ replicas }: ServiceView): readonly number[] =>
  replicas
    .filter(({ status }) => status === 'READY')
    .map(({ id }) => id)
    .toSorted((a, b) => a - b);

/** Applies all faults to the SSH hosts, one after the other; the replica count is the same at the end. */
async function befall(scene: Scene, service: ServiceView): Promise<void> {
  const { svc, aws, desk } = scene;
  const [far, cut, dead] = [inRegion(service, 'us-west-2'), inRegion(service, 'us-east-2'), inRegion(service, 'us-east-1')];
  const halved = await underLoad('one without power, another one cut off for a minute', scene, async () => {
    await instanceOf(scene, dead).host.kill();
    const { host } = instanceOf(scene, cut);
    await host.cut();
    await pass(60_000);
    await host.heal();
    await answersFrom(scene, cut.id);
  });
  expect(Object.keys(halved.outcomes)).toEqual(['200']);

  const paused = await underLoad('one paused for 20 s', scene, async () => {
    const { host } = instanceOf(scene, far);
    await host.pause();
    await pass(20_000);
    await host.resume();
    await answersFrom(scene, far.id);
  });
  expect(Object.keys(paused.outcomes)).toEqual(['200']);

  const replaced = await underLoad('the one without power replaced', scene, () => answersFrom(scene, 5));
  expect(Object.keys(replaced.outcomes)).toEqual(['200']);
  const before = readyIds(await svc.ready('web', 4));
  expect(before).toEqual([...readyIds(service).filter((id) => id !== dead.id), 5]);

  await withoutClient(scene, async () => {
    const taken = await underLoad('one terminated while the client is gone', scene, async () => {
      aws.control.terminate(instanceOf(scene, cut).id);
      await answersFrom(scene, 6);
    });
    expect(Object.keys(taken.outcomes)).toEqual(['200']);
    if (hasCron) await reboot(scene);
  });
  if (!hasCron) await desk.reboot();
  expect(readyIds(await svc.ready('web', 4))).toEqual([...before.filter((id) => id !== cut.id), 6]);
}

/** Replaces all replicas by ones of another version; the controller is on another machine, so files are sent again. */
async function update(scene: Scene, file: string): Promise<void> {
  const { svc } = scene;
  const updated = await underLoad('updated to another version', scene, async () => {
    writeFileSync(file, readFileSync(file, 'utf8').replace('run: ', 'envs: {RELEASE: "2"}\nrun: '));
    await svc.ok(['serve', 'update', 'web', file, '--yes', '--wait']);
  });
  expect([Object.keys(updated.outcomes), (await svc.service('web')).activeVersions]).toEqual([['200'], [2]]);
}

/** The endpoint is unreachable while its machine is; no client action could restore it. */
async function reboot(scene: Scene): Promise<void> {
  await underLoad('the host of the controller rebooted while the client is gone', scene, async () => {
    await scene.desk.reboot();
    await answersFrom(scene, 6);
  });
}

describeCloud('replicas in three AWS regions and on an SSH host, with a remote controller', () => {
  test('survive pauses, cuts, dead machines, an absent client, a reboot and an update, and leave nothing', async () => {
    await withCloud({}, async (world) => {
      const { svc, hosts } = world;
      const [desk, box] = await Promise.all([hosts.up('desk', { delayMs: 1 }), hosts.up('box', { delayMs: 1 })]);
      const file = writeFiles(world, desk, box);
      const at = Date.now();
      await svc.ok(['serve', 'up', file, '-n', 'web', '--yes']);
      const upAt = Date.now();
      const service = await svc.ready('web', 4);
      report(
        `controller up in ${((upAt - at) / 1_000).toFixed(1)} s, four replicas ready ${((Date.now() - upAt) / 1_000).toFixed(1)} s later`,
      );
      for (const region of ['shelf', ...Object.keys(regions)]) inRegion(service, region);
      expect(new URL(service.endpoint).hostname).toBe(desk.ip);

      const load = new Requests(service.endpoint, 20);
      const scene = { ...world, load, desk };
      await befall(scene, service)
        .then(() => update(scene, file))
        .finally(() => load.stop());
      report(`in all: ${JSON.stringify(load.figuresSince(0).outcomes)}`);

      await svc.ok(['serve', 'down', 'web', '--yes']);
      await waitFor('the service to be gone', async () => (await svc.services()).length === 0, { describe: svc.services });
      await svc.ok(['controller', 'down', '--yes']);
      nothingLeft(world);
      await killProcessesOf(svc.home);
      for (const host of [desk, box])
        await waitFor(`${host.name} to be as before`, async () => (await leftOn(host)).length === 0, { describe: () => leftOn(host) });
    });
  }, 1_800_000);
});
