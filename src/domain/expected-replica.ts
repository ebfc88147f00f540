import type { ReplicaRecord } from './records.ts';

/**
 * What the first replica to come does: its machine is requested or boots, its setup runs, its program loads, or its
 * sleeping engine wakes up.
 */
export const replicaPhases = ['provisioning', 'starting', 'loading', 'waking'] as const;
type ReplicaPhase = (typeof replicaPhases)[number];

/** The replica that queued requests wait for. */
export interface ExpectedReplica {
  readonly phase: ReplicaPhase;
  /** ms since the epoch; absent while no replica of the service was ever ready, and for one that wakes up. */
  readonly readyAt?: number;
}

/** Only the newest starts count: another version may start faster. */
const countedStarts = 9;

type Starting = Pick<ReplicaRecord, 'state' | 'createdAt' | 'startedAt' | 'firstReadyAt' | 'firstProbeFailureAt'>;

/** Median time from a launch to the first passed probe, s; undefined while no replica was ever ready. */
export function measuredStartSeconds(replicas: readonly Pick<ReplicaRecord, 'createdAt' | 'firstReadyAt'>[]): number | undefined {
  const starts = replicas.flatMap(({ createdAt, firstReadyAt }) => (firstReadyAt === null ? [] : [(firstReadyAt - createdAt) / 1_000]));
  const newest = starts.slice(-countedStarts).toSorted((a, b) => a - b);
  return newest[Math.floor((newest.length - 1) / 2)];
}

/**
 * The replica that will be ready first; undefined while a replica is ready, and while none starts. Of several, the one
 * that is furthest, then the oldest. `startSeconds`: see `measuredStartSeconds`.
 */
export function expectedReplica(replicas: readonly Starting[], startSeconds: number | undefined): ExpectedReplica | undefined {
  if (replicas.some(({ state }) => state === 'READY')) return undefined;
  const starting = replicas.flatMap((replica) => {
    const phase = phaseOf(replica);
    return phase === undefined ? [] : [{ phase, createdAt: replica.createdAt }];
  });
  const [first] = starting.toSorted((a, b) => replicaPhases.indexOf(b.phase) - replicaPhases.indexOf(a.phase) || a.createdAt - b.createdAt);
  if (first === undefined) return undefined;
  const { phase, createdAt } = first;
  // Its launch was long ago, so the time of a start says nothing about its end.
  if (phase === 'waking' || startSeconds === undefined) return { phase };
  return { phase, readyAt: createdAt + Math.round(startSeconds * 1_000) };
}

function phaseOf({ state, startedAt, firstProbeFailureAt }: Starting): ReplicaPhase | undefined {
  if (state === 'PENDING' || state === 'PROVISIONING') return 'provisioning';
  // The others are NOT_READY by a failed probe, whose time is recorded. That of a machine that was silent is removed, but
  // then a probe follows at once.
  if (state === 'NOT_READY' && firstProbeFailureAt === null) return 'waking';
  if (state !== 'STARTING') return undefined;
  return startedAt === null ? 'starting' : 'loading';
}
