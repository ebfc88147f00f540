import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { withLocalProvider, type LocalProviderFixture } from '../../test/support/local-provider.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { keepJobLog } from './job-log.ts';
import type { Task } from '../domain/task.ts';
import type { MachineNode } from '../providers/provider.ts';
import { systemClock } from '../shared/clock.ts';
import { bootstrap } from '../provision/bootstrap.ts';
import { jobStatus } from '../provision/job.ts';
import { machineNodes, stopNodes, watchNodes, type NodesStatus, type WatchNodesOptions } from '../provision/node-jobs.ts';

/** Several local machines as the nodes of one machine. */
async function nodesIn(provider: LocalProviderFixture, count: number): Promise<readonly MachineNode[]> {
  const machines = await Promise.all(Array.from({ length: count }, (_, rank) => provider.machine(`node-${rank}`)));
  return machines.map(({ remote }, rank) => ({ rank, ip: `10.0.0.${rank + 1}`, remote }));
}

async function start(nodes: readonly MachineNode[], change: Partial<Task>): Promise<void> {
  const task = aTask({ numNodes: nodes.length, ...change });
  const provider = aStubProvider({ nodes: async () => nodes });
  await bootstrap(
    { provider, id: idOf('m1') },
    {
      task,
      snapshot: { dir: '/none', name: 'v1' },
      delivery: { publish: async () => undefined, fetchable: () => Promise.reject(new Error('nothing to fetch')) },
      jobName: 'main',
      identity: {
        owner: 'chat',
        replicaId: 1,
        taskId: 't',
        port: 8080,
        gpus: 0,
      },
      log: () => undefined,
      isolated: true,
      keepExtra: false,
    },
    new AbortController().signal,
  );
}

/** `statuses` gets every status at once. */
async function phasesOf(
  nodes: readonly MachineNode[],
  endsWith: WatchNodesOptions['endsWith'],
  statuses: NodesStatus[] = [],
): Promise<readonly NodesStatus[]> {
  for await (const status of watchNodes(nodes, 'main', new AbortController().signal, { endsWith })) statuses.push(status);
  return statuses;
}

test('nodes know their peers, start together, and share one log', async () => {
  await withLocalProvider({}, async (provider) => {
    const nodes = await nodesIn(provider, 3);
    const setup = 'if [ "$SKYPILOT_SETUP_NODE_RANK" = 2 ]; then until [ -e released ]; do sleep 0.05; done; fi; echo prepared';
    const run =
      'echo "rank $SKYPILOT_NODE_RANK of $SVC_NUM_NODES: $(echo "$SKYPILOT_NODE_IPS" | tr "\\n" ,)"; printf unended; until [ -e seen ]; do sleep 0.05; done';
    await start(nodes, { setup, run });
    const statuses: NodesStatus[] = [];
    const watching = phasesOf(nodes, 'all', statuses);
    const dir = join(provider.paths.home, 'kept');
    mkdirSync(dir);
    const over = new AbortController();
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const log = keepJobLog(nodes, 'main', join(dir, 'log'), { clock: systemClock, onError }, over.signal);
    const phases = async () => Promise.all(nodes.map(async ({ remote }) => (await jobStatus(remote, 'main')).phase));
    await waitFor('two nodes to be prepared', async () => (await phases()).join() === 'waiting,waiting,setup', { describe: phases });
    const [, , last] = nodes;
    await last?.remote.writeFile(`${last.remote.baseDir}/workdir/released`, '');
    await waitFor('the run to be reported', () => statuses.some(({ phase }) => phase === 'run'));
    for (const { remote } of nodes) await remote.writeFile(`${remote.baseDir}/workdir/seen`, '');
    await watching;
    expect(statuses.map(({ phase }) => phase).filter((phase) => phase !== 'absent')).toEqual(['setup', 'waiting', 'run', 'ended']);
    expect(statuses.at(-1)).toMatchObject({ rank: 0, exitCode: 0 });
    await Promise.all(nodes.map(({ rank }) => log.untilKept(rank)));
    over.abort();
    await log.ended;
    expect(errors).toEqual([]);
    const lines = readFileSync(join(dir, 'log'), 'utf8').split('\n');
    for (const [rank, name] of ['(head, rank=0)', '(worker1, rank=1, ip=10.0.0.2)', '(worker2, rank=2, ip=10.0.0.3)'].entries()) {
      expect(lines).toContain(`${name} prepared`);
      expect(lines).toContain(`${name} rank ${rank} of 3: 10.0.0.1,10.0.0.2,10.0.0.3,`);
      expect(lines.some((line) => line.startsWith(`${name} unended`))).toBe(true);
    }
  });
});

test('the first failed node ends the job, and the other nodes can be stopped', async () => {
  await withLocalProvider({}, async (provider) => {
    const nodes = await nodesIn(provider, 2);
    await start(nodes, { run: '[ "$SVC_NODE_RANK" = 0 ] || exit 7; exec sleep 1000' });
    expect((await phasesOf(nodes, 'all')).at(-1)).toMatchObject({ phase: 'ended', rank: 1, exitCode: 7 });
    await stopNodes(nodes, 'main', { graceMs: 60_000 });
    const [head] = await Promise.all(nodes.map(({ remote }) => jobStatus(remote, 'main')));
    expect(head?.signal).toBe('SIGTERM');
  });
});

test("any node's end ends a service; a failed setup keeps all nodes from running", async () => {
  await withLocalProvider({}, async (provider) => {
    const nodes = await nodesIn(provider, 2);
    await start(nodes, { setup: 'true', run: '[ "$SVC_NODE_RANK" = 1 ] || exec sleep 1000' });
    expect((await phasesOf(nodes, 'any')).at(-1)).toMatchObject({ phase: 'ended', rank: 1, exitCode: 0 });
    await stopNodes(nodes, 'main', { graceMs: 60_000 });
  });
  await withLocalProvider({}, async (provider) => {
    const nodes = await nodesIn(provider, 2);
    await start(nodes, { setup: '[ "$SKYPILOT_SETUP_NODE_RANK" = 0 ] || exit 4', run: 'echo > ran' });
    expect((await phasesOf(nodes, 'any')).at(-1)).toMatchObject({ rank: 1, exitCode: 4, failedPhase: 'setup' });
    await stopNodes(nodes, 'main', { graceMs: 60_000 });
    const [head] = nodes;
    expect(await head?.remote.readFile(`${head.remote.baseDir}/workdir/ran`)).toBeUndefined();
  });
});

test('a one-node machine has one node and is not asked for more', async () => {
  await withLocalProvider({}, async (provider) => {
    const { id } = await provider.machine('a');
    expect((await machineNodes(provider.provider, id, 1)).map(({ rank, ip }) => [rank, ip])).toEqual([[0, '127.0.0.1']]);
    await expect(machineNodes(provider.provider, id, 2)).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
  });
});
