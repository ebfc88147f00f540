import type { SessionKey } from '../../src/domain/task.ts';
import { seededRandom } from '../../src/shared/random.ts';
import { Board } from '../../src/balancer/board/board.ts';
import { FileBudget } from '../../src/balancer/board/file-budget.ts';
import { createMetricsMemory, metricsRows } from '../../src/balancer/metrics/row-layout.ts';
import { ThreadMetrics } from '../../src/balancer/metrics/thread-metrics.ts';
import { createPolicy, type Policy } from '../../src/balancer/policy/policies.ts';
import { ReplicaSet, type Choice } from '../../src/balancer/replicas/replica-set.ts';
import type { SlottedReplica } from '../../src/balancer/replicas/replica.ts';
import { Deadlines } from '../../src/balancer/transport/deadlines.ts';
import { FakeClock } from './fake-clock.ts';

interface Options {
  readonly board?: Board;
  readonly policy?: Policy;
  readonly session?: SessionKey;
  readonly maxConnectionsPerReplica?: number;
}

/** Picks a replica; the set must have one with room. */
export function pickFrom(set: ReplicaSet | undefined, ...request: Parameters<ReplicaSet['pick']>): Choice {
  const choice = set?.pick(...request);
  if (choice === undefined || choice === 'full') throw new Error('nothing was picked');
  return choice;
}

/** The sets of all threads of a balancer over the same memory. One thread unless `board` has more. */
export function replicaSets(
  replicas: readonly SlottedReplica[],
  { board = Board.create(1), policy, session, maxConnectionsPerReplica = 10_000 }: Options = {},
) {
  const clock = new FakeClock();
  const sets = metricsRows(createMetricsMemory(board.threads)).map((row, thread) => {
    const deadlines = new Deadlines(clock);
    const services = {
      protocol: 'auto',
      clock,
      deadlines,
      files: new FileBudget({ board, thread }, { files: 100, connections: 50 }, deadlines),
      maxConnectionsPerReplica,
      threads: board.threads,
      crashed: () => undefined,
      metrics: new ThreadMetrics(row),
    } as const;
    const set = new ReplicaSet(policy ?? createPolicy('least_load'), seededRandom(thread), services, { board, thread }, session);
    set.apply(replicas);
    return set;
  });
  return { clock, sets };
}
