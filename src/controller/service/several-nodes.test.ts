import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withWorld, type World } from '../../../test/support/service-world.ts';
import type { ReplicaPolicy } from '../../domain/task.ts';
import { fakeBaseDir, type FakeMachine } from '../../providers/fake/fake-machine.ts';
import { parseJobRecord, type JobRecord } from '../../remote/job-record.ts';
import { seededRandom } from '../../shared/random.ts';

const one = { minReplicas: 1, maxReplicas: 1 };

/** A service whose replicas have two nodes each. */
const withPairs = (use: (world: World) => Promise<void>, policy: Partial<ReplicaPolicy> = one, seed = 1): Promise<void> =>
  withWorld(use, policy, seed, undefined, { numNodes: 2, setup: 'prepare' });

const fileOn = (node: FakeMachine, name: string): string => node.files.get(`${fakeBaseDir(node)}/jobs/main/${name}`) ?? '';
const recordOn = (node: FakeMachine): JobRecord | undefined => parseJobRecord(fileOn(node, 'status'));

const say = (node: FakeMachine, text: string): void => node.write(`${fakeBaseDir(node)}/jobs/main/job.log`, text);

function nodesOf(world: World, index = 0): readonly FakeMachine[] {
  return world.cloud.living[index]?.nodes ?? [];
}

test('a two-node replica is one machine; its nodes start together after both setups', async () => {
  await withPairs(async (world) => {
    world.cloud.conduct.jobOf = (_, rank) => ({ setupMs: rank === 0 ? 1_000 : 20_000 });
    expect(await world.untilReady(1)).toBeGreaterThanOrEqual(20_000);
    const nodes = nodesOf(world);
    expect([world.cloud.machines.size, nodes.length]).toEqual([1, 2]);
    for (const [rank, node] of nodes.entries()) {
      const env = fileOn(node, 'env');
      expect(env).toContain(`export SKYPILOT_NODE_RANK='${rank}'\n`);
      expect(env).toContain("export SVC_NODE_IPS='10.0.0.1\n10.0.0.2'\n");
      expect(env).toContain("export SVC_NUM_NODES='2'\n");
    }
    const [head, worker] = nodes.map((node) => recordOn(node)?.startedAt ?? 0);
    expect(Math.abs((head ?? 0) - (worker ?? 0))).toBeLessThan(500);
    const [replica] = await world.replicas();
    // Requests go to the first node; the price covers both.
    expect(replica).toMatchObject({
      address: { kind: 'tcp', host: nodes[0]?.host },
      offer: { hourlyUsd: 2, resources: '2x(cpus=4, mem=16)' },
    });
  });
});

test("a program's end on any node ends the replica, with rank and last output", async () => {
  await withPairs(async (world) => {
    world.cloud.conduct.jobOf = (machine, rank) => (machine === 1 && rank === 1 ? { runMs: 30_000, exitCode: 3 } : {});
    await world.untilReady(1);
    const [head, worker] = nodesOf(world);
    if (head === undefined || worker === undefined) throw new Error('not two nodes');
    say(head, 'serving\nstill here\n');
    say(worker, 'joined\nlost the head\n');
    await world.clock.advance(40_000);
    await world.untilReady(1);
    await world.clock.advance(5_000);
    const [failed] = await world.replicas();
    expect(failed?.state).toBe('FAILED');
    expect(failed?.reason).toBe('Its run on rank 1 (10.0.0.2) ended with exit code 3. Its last output:\n  joined\n  lost the head');
    expect([head.goneReason, world.cloud.living.length]).toEqual(['deleted', 1]);
  });
});

test("a replica's log has the lines of all nodes, each with its node", async () => {
  await withPairs(async (world) => {
    await world.untilReady(1);
    for (const node of nodesOf(world)) say(node, `one of ${node.rank}\nhalf`);
    await world.clock.advance(1_000);
    await world.crash();
    await world.start();
    for (const node of nodesOf(world)) say(node, `one of ${node.rank}\nhalf a line\n`);
    const lines = (): readonly string[] => readFileSync(world.files.jobLog(1), 'utf8').split('\n').filter(Boolean);
    await world.clock.advanceUntil(() => lines().length === 4, 10_000, 50);
    expect(lines().toSorted()).toEqual([
      '(head, rank=0) half a line',
      '(head, rank=0) one of 0',
      '(worker1, rank=1, ip=10.0.0.2) half a line',
      '(worker1, rank=1, ip=10.0.0.2) one of 1',
    ]);
  });
});

test('after a restart, a replica is ready only if all nodes run it', async () => {
  await withPairs(async (world) => {
    await world.untilReady(1);
    await world.crash();
    await world.start();
    expect(await world.states()).toEqual(['1 READY']);
    await world.crash();
    nodesOf(world)[1]?.killProgram();
    await world.start();
    expect((await world.historyOf(1)).map(([cause]) => cause)).toContain('found-dead');
    await world.clock.advance(10_000);
    await world.untilReady(1);
    expect(await world.states()).toEqual(['1 FAILED', '2 READY']);
  });
});

test('after a crash while nodes wait for each other, the next reconciler starts them', async () => {
  await withPairs(async (world) => {
    world.cloud.conduct.jobOf = (_, rank) => ({ setupMs: rank === 0 ? 1_000 : 20_000 });
    const phases = (): readonly (string | undefined)[] => nodesOf(world).map((node) => recordOn(node)?.phase);
    const haveBegun = (): boolean => phases().includes('waiting') && !phases().includes(undefined);
    await world.clock.advanceUntil(haveBegun, 60_000, 100);
    await world.crash();
    await world.clock.advance(60_000);
    expect(phases()).toEqual(['waiting', 'waiting']);
    await world.start();
    await world.untilReady(1);
    expect(world.cloud.machines.size).toBe(1);
  });
});

test.each([1, 2])('killed at any moment, each replica has one machine; no node leaks (seed %d)', async (seed) => {
  await withPairs(
    async (world) => {
      const random = seededRandom(seed);
      Object.assign(world.cloud.conduct, {
        callMs: 40,
        bootMs: 1_000,
        lostReplies: 0.1,
        jobOf: () => ({ setupMs: 500, readyAfterMs: 500 }),
      });
      for (let crash = 0; crash < 20; crash += 1) {
        await world.clock.advance(Math.floor(random() * 4_000));
        await world.crash();
        const keys = world.cloud.living.map(({ key }) => key);
        expect(new Set(keys).size).toBe(keys.length);
        if (random() < 0.3) nodesOf(world)[Math.floor(random() * 2)]?.killProgram();
        await world.start();
      }
      world.cloud.conduct.lostReplies = 0;
      await world.untilReady(2);
      await world.clock.advance(130_000);
      expect(world.cloud.living.length).toBe(2);
    },
    {},
    seed,
  );
});
