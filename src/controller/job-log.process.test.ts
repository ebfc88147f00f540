import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { withLocalPlace, type LocalPlace } from '../../test/support/local-place.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { keepJobLog } from './job-log.ts';
import type { Task } from '../domain/task.ts';
import type { MachineNode } from '../providers/provider.ts';
import { systemClock } from '../shared/clock.ts';
import { bootstrap } from '../provision/bootstrap.ts';
import { taskEnvironment } from '../provision/environment.ts';
import { jobStatus } from '../provision/job.ts';
import { machineNodes, stopNodes, watchNodes, type NodesStatus, type WatchNodesOptions } from '../provision/node-jobs.ts';

/** Machines of this computer as the nodes of one. */
async function nodesIn(place: LocalPlace, count: number): Promise<readonly MachineNode[]> {
  const machines = await Promise.all(Array.from({ length: count }, (_, rank) => place.machine(`node-${rank}`)));
  return machines.map(({ remote }, rank) => ({ rank, ip: `10.0.0.${rank + 1}`, remote }));
}

async function start(nodes: readonly MachineNode[], change: Partial<Task>): Promise<void> {
  const task = aTask({ numNodes: nodes.length, ...change });
  await bootstrap(
    nodes,
    {
      task,
      workdir: undefined,
      mounts: [],
      delivery: { publish: async () => undefined, fetchable: () => Promise.reject(new Error('nothing to fetch')) },
      jobName: 'main',
      withSetup: true,
      env: ({ rank }, all) =>
        taskEnvironment(task, {
          owner: 'chat',
          replicaId: 1,
          taskId: 't',
          port: 8080,
          gpus: 0,
          node: { rank, ips: all.map(({ ip }) => ip) },
        }),
      log: () => undefined,
      isolated: true,
      keepExtra: false,
    },
    new AbortController().signal,
  );
}

async function phasesOf(nodes: readonly MachineNode[], endsWith: WatchNodesOptions['endsWith']): Promise<readonly NodesStatus[]> {
  const statuses: NodesStatus[] = [];
  for await (const status of watchNodes(nodes, 'main', new AbortController().signal, { endsWith })) statuses.push(status);
  return statuses;
}

test('nodes know each other, begin to run together, and their output is in one log', async () => {
  await withLocalPlace({}, async (place) => {
    const nodes = await nodesIn(place, 3);
    const setup = 'if [ "$SKYPILOT_SETUP_NODE_RANK" = 2 ]; then until [ -e released ]; do sleep 0.05; done; fi; echo prepared';
    const run = 'echo "rank $SKYPILOT_NODE_RANK of $SVC_NUM_NODES: $(echo "$SKYPILOT_NODE_IPS" | tr "\\n" ,)"; printf unended';
    await start(nodes, { setup, run });
    const watching = phasesOf(nodes, 'all');
    const dir = join(place.paths.home, 'kept');
    mkdirSync(dir);
    const over = new AbortController();
    const errors: unknown[] = [];
    const onError = (error: unknown): void => void errors.push(error);
    const log = keepJobLog(nodes, 'main', join(dir, 'log'), { clock: systemClock, onError }, over.signal);
    const phases = async () => Promise.all(nodes.map(async ({ remote }) => (await jobStatus(remote, 'main')).phase));
    await waitFor('two nodes to be prepared', async () => (await phases()).join() === 'waiting,waiting,setup', { describe: phases });
    const [, , last] = nodes;
    await last?.remote.writeFile(`${last.remote.baseDir}/workdir/released`, '');
    const statuses = await watching;
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

test('the first node that fails is the end of the job, and the others can be stopped', async () => {
  await withLocalPlace({}, async (place) => {
    const nodes = await nodesIn(place, 2);
    await start(nodes, { run: '[ "$SVC_NODE_RANK" = 0 ] || exit 7; exec sleep 1000' });
    expect((await phasesOf(nodes, 'all')).at(-1)).toMatchObject({ phase: 'ended', rank: 1, exitCode: 7 });
    await stopNodes(nodes, 'main', { graceMs: 5_000 });
    const [head] = await Promise.all(nodes.map(({ remote }) => jobStatus(remote, 'main')));
    expect(head?.signal).toBe('SIGTERM');
  });
});

test('a service has ended when a node has, however well; one that fails in setup lets nobody run', async () => {
  await withLocalPlace({}, async (place) => {
    const nodes = await nodesIn(place, 2);
    await start(nodes, { setup: 'true', run: '[ "$SVC_NODE_RANK" = 1 ] || exec sleep 1000' });
    expect((await phasesOf(nodes, 'any')).at(-1)).toMatchObject({ phase: 'ended', rank: 1, exitCode: 0 });
    await stopNodes(nodes, 'main', { graceMs: 5_000 });
  });
  await withLocalPlace({}, async (place) => {
    const nodes = await nodesIn(place, 2);
    await start(nodes, { setup: '[ "$SKYPILOT_SETUP_NODE_RANK" = 0 ] || exit 4', run: 'echo > ran' });
    expect((await phasesOf(nodes, 'any')).at(-1)).toMatchObject({ rank: 1, exitCode: 4, failedPhase: 'setup' });
    await stopNodes(nodes, 'main', { graceMs: 5_000 });
    const [head] = nodes;
    expect(await head?.remote.readFile(`${head.remote.baseDir}/workdir/ran`)).toBeUndefined();
  });
});

test('a machine of one node has no others, and is not asked for them', async () => {
  await withLocalPlace({}, async (place) => {
    const { id } = await place.machine('a');
    expect((await machineNodes(place.provider, id, 1)).map(({ rank, ip }) => [rank, ip])).toEqual([[0, '127.0.0.1']]);
    await expect(machineNodes(place.provider, id, 2)).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
  });
});
