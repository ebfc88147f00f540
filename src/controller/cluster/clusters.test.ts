import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anOffer, aTask } from '../../../test/support/builders.ts';
import { aDaemonContext } from '../../../test/support/daemon-context.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { fakeBaseDir } from '../../providers/fake/fake-machine.ts';
import { FakeCloud } from '../../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { homePaths } from '../../shared/paths.ts';
import { seededRandom } from '../../shared/random.ts';
import { openStore } from '../../store/open-store.ts';
import type { ClusterRecord, JobRecord } from '../../domain/records.ts';
import type { Store } from '../../store/store.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { Leftovers } from '../leftovers.ts';
import { serviceFiles } from '../deploy/service-files.ts';
import { clusterPaths, jobLogs } from './cluster-paths.ts';
import { Clusters, type LaunchRequest } from './clusters.ts';

/** All clusters of a controller over an in-memory provider, in virtual time. */
class World {
  readonly clock = new FakeClock();
  readonly backend = new FakeCloud(this.clock, seededRandom(1), [anOffer({ provider: 'fake', hourlyUsd: 1 })]);
  readonly home: string;
  readonly store: Store;
  readonly context: DaemonContext;
  readonly clusters: Clusters;

  constructor(home: string, store: Store) {
    this.home = home;
    this.store = store;
    const providers = providersOf(new FakeProvider(this.backend));
    this.context = aDaemonContext(home, store, { clock: this.clock, ...providers });
    this.clusters = new Clusters(this.context, new Leftovers(this.context));
  }

  launch(source: string, mode: LaunchRequest['mode'] = 'launch'): Promise<unknown> {
    const file = join(this.home, 'task.yaml');
    return this.clusters.launch({ source, file, envs: {}, secrets: {}, workdir: undefined, cluster: 'dev', mode });
  }

  async cluster(): Promise<ClusterRecord | undefined> {
    return this.store.clusters.get('dev');
  }

  jobs(): Promise<readonly JobRecord[]> {
    return this.store.clusters.jobs('dev');
  }

  /** Advances virtual time until all jobs have ended. */
  async untilEnded(): Promise<readonly JobRecord[]> {
    for (let round = 0; round < 2_000; round += 1) {
      const jobs = await this.jobs();
      if (jobs.length > 0 && jobs.every(({ endedAt }) => endedAt !== null)) return jobs;
      await this.clock.advance(50);
      for (let turn = 0; turn < 10; turn += 1) await this.clock.settle();
    }
    throw new Error(`jobs did not end: ${JSON.stringify(await this.jobs())}`);
  }

  /** Content of a job's logs before its own output; a missing file counts as empty. */
  async provisioning(jobId: number, at: { readonly isFirst: boolean; readonly isUp: boolean }): Promise<readonly string[]> {
    const files = clusterPaths(homePaths(this.home, 0), (await this.cluster())?.key ?? '');
    return jobLogs(files, jobId, at)
      .slice(0, -1)
      .map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''));
  }

  async log(jobId: number): Promise<string> {
    return readFileSync(clusterPaths(homePaths(this.home, 0), (await this.cluster())?.key ?? '').jobLog(jobId), 'utf8');
  }
}

async function withClusters(use: (world: World) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-clusters-'));
  const store = await openStore({ path: join(home, 'state.db'), clock: new FakeClock() });
  const world = new World(home, store);
  try {
    await use(world);
  } finally {
    const released = world.clusters.release();
    await world.clock.advance(1_000);
    await released;
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
}

test('a two-node job ends after both nodes; later jobs may use fewer nodes', async () => {
  await withClusters(async (world) => {
    world.backend.conduct.jobOf = (_, rank) => ({ runMs: rank === 0 ? 1_000 : 30_000 });
    await world.launch('num_nodes: 2\nsetup: prepare\nrun: train\n');
    const beganAt = world.clock.now();
    const [job] = await world.untilEnded();
    expect(job).toMatchObject({ state: 'SUCCEEDED', exitCode: 0 });
    expect(world.clock.now() - beganAt).toBeGreaterThanOrEqual(30_000);
    const [machine] = world.backend.living;
    expect([machine?.nodes.length, (await world.cluster())?.offer?.hourlyUsd]).toEqual([2, 2]);

    await world.launch('run: look\n', 'exec');
    await world.untilEnded();
    expect(machine?.nodes.map((node) => node.files.has(`${fakeBaseDir(node)}/jobs/job-2/status`))).toEqual([true, false]);
    await expect(world.launch('num_nodes: 3\nrun: train\n', 'exec')).rejects.toMatchObject({
      code: 'SVC_INVALID_TASK',
      message: "Cluster 'dev' has 2 nodes, and the task wants 3 (num_nodes).",
    });
  });
});

test('a failure on one node ends the job on all; its log covers all', async () => {
  await withClusters(async (world) => {
    world.backend.conduct.jobOf = (_, rank) => (rank === 1 ? { runMs: 5_000, exitCode: 9 } : {});
    await world.launch('num_nodes: 2\nrun: train\n');
    await world.clock.advanceUntil(() => world.backend.living[0]?.nodes[1]?.isServing() === true, 60_000, 100);
    for (const node of world.backend.living[0]?.nodes ?? []) node.write(`${fakeBaseDir(node)}/jobs/job-1/job.log`, `I am ${node.rank}\n`);
    const [job] = await world.untilEnded();
    expect(job).toMatchObject({ state: 'FAILED', exitCode: 9 });
    expect(world.backend.living[0]?.nodes.some((node) => node.isServing())).toBe(false);
    expect((await world.log(1)).split('\n').toSorted()).toEqual(['', '(head, rank=0) I am 0', '(worker1, rank=1, ip=10.0.0.2) I am 1']);
  });
});

test("a reported machine loss ends its jobs at once with the provider's reason", async () => {
  await withClusters(async (world) => {
    await world.launch('run: train\n');
    await world.clock.advanceUntil(() => world.backend.living[0]?.isServing() === true, 60_000, 100);
    const [machine] = world.backend.living;
    if (machine !== undefined) world.backend.preempt(machine.id, 'The node is gone');
    const lostAt = world.clock.now();
    const [job] = await world.untilEnded();
    expect([job?.state, world.clock.now() - lostAt < 2_000]).toEqual(['FAILED', true]);
    expect((await world.cluster())?.reason).toBe('Its machine fake-1 at fake/here is gone: The node is gone.');
  });
});

test('the launching job and waiting jobs have the provisioning log; later jobs do not', async () => {
  await withClusters(async (world) => {
    world.backend.conduct.jobOf = () => ({ runMs: 1_000 });
    await world.launch('run: train\n');
    const early = await world.provisioning(2, { isFirst: false, isUp: false });
    await world.untilEnded();
    await world.launch('run: look\n', 'exec');
    await world.untilEnded();
    expect(early.length).toBe(2);
    expect(await world.provisioning(1, { isFirst: true, isUp: true })).toEqual([
      expect.stringContaining('created machine'),
      expect.stringContaining('Starting run'),
    ]);
    expect(await world.provisioning(2, { isFirst: false, isUp: true })).toEqual([expect.stringMatching(/^\[svc [^\]]*\] Starting run\n$/)]);
  });
});

test('damaged files fail the job that needs them; other clusters continue', async () => {
  await withClusters(async (world) => {
    const next = new World(world.home, { ...world.store, isShared: true });
    const cluster = { state: 'INIT', machineId: null, offer: null, createdAt: 0, reason: null, revision: 0 } as const;
    const job = { state: 'PENDING', createdAt: 0, startedAt: null, endedAt: null, exitCode: null } as const;
    for (const name of ['damaged', 'whole']) {
      await world.store.clusters.add({ ...cluster, name, key: name, machineKey: name }, anEvent());
      await world.store.clusters.addJob({ ...job, cluster: name, task: aTask() });
      mkdirSync(join(world.home, 'kept', name), { recursive: true });
      await serviceFiles(next.store).save(name, 'jobs/1', join(world.home, 'kept', name));
    }
    await world.store.files.setTree('damaged', 'jobs/1', '{');
    await next.clusters.recover();
    const released = next.clusters.release();
    const states = ['damaged', 'whole'].map(async (name) => (await world.store.clusters.jobs(name)).map(({ state }) => state));
    expect(await Promise.all(states)).toEqual([['FAILED'], ['PENDING']]);
    expect(existsSync(clusterPaths(homePaths(world.home, 0), 'whole').snapshot(1))).toBe(true);
    await next.clock.advance(5_000);
    await released;
  });
});
