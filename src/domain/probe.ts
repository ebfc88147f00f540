import type { ReplicaEvent, ReplicaState } from './replica-state.ts';
import type { ReadinessProbe } from './task.ts';

/** What the answer to a probe is judged by. */
export interface ProbedReplica {
  readonly state: ReplicaState;
  /** First of the failures in a row, ms; null when the last probe passed or none was made. */
  readonly firstProbeFailureAt: number | null;
}

/** What a probe's answer changes. */
export interface ProbeVerdict {
  readonly event: ReplicaEvent | undefined;
  readonly firstProbeFailureAt: number | null;
}

/**
 * Pure: one probe's answer. A starting replica may fail for the initial delay, one that was ready for the failure threshold; both count from
 * the first failure in a row.
 */
export function judgeProbe(replica: ProbedReplica, passed: boolean, probe: ReadinessProbe, now: number): ProbeVerdict {
  if (passed) return { event: { type: 'probe-passed' }, firstProbeFailureAt: null };
  const since = replica.firstProbeFailureAt ?? now;
  const failingMs = now - since;
  const { state } = replica;
  // A late answer for a replica that is going away, or not there yet, says nothing.
  if (state !== 'READY' && state !== 'STARTING' && state !== 'NOT_READY')
    return { event: undefined, firstProbeFailureAt: replica.firstProbeFailureAt };
  if (state === 'READY') return { event: { type: 'probe-failed' }, firstProbeFailureAt: since };
  const limitSeconds = state === 'STARTING' ? probe.initialDelaySeconds : probe.failureThresholdSeconds;
  if (failingMs < limitSeconds * 1_000) return { event: undefined, firstProbeFailureAt: since };
  return { event: { type: 'stop-requested', cause: state === 'STARTING' ? 'initial-delay' : 'probing' }, firstProbeFailureAt: since };
}

/** Starting replicas are asked often, so that they serve within a second of being able to; the longer it takes, the less often. */
const startingIntervals = [
  { untilMs: 10_000, everyMs: 250 },
  { untilMs: 60_000, everyMs: 500 },
  { untilMs: Number.POSITIVE_INFINITY, everyMs: 1_000 },
] as const;
/** A replica that fell out is asked more often than a good one, so that it comes back soon. */
const notReadyIntervalMs = 1_000;

/** Time from the end of one probe to the next, ms. */
export function nextProbeMs(state: ReplicaState, sinceStartMs: number, probe: ReadinessProbe): number {
  const steadyMs = probe.intervalSeconds * 1_000;
  if (state === 'STARTING') return startingIntervals.find(({ untilMs }) => sinceStartMs < untilMs)?.everyMs ?? steadyMs;
  return state === 'NOT_READY' ? Math.min(steadyMs, notReadyIntervalMs) : steadyMs;
}

/** A probe of a ready replica that takes so long takes it out of rotation while the answer is awaited, ms: it may hang. */
export const slowProbeMs = 2_000;

/**
 * Whether a slow replica may leave the rotation: never more than half of those in it do, or the rest would be slow next. `serving`: those that get
 * requests now, the slow one included; `all`: also those that step aside.
 */
export function mayStepAside(serving: number, all: number): boolean {
  return serving - 1 >= Math.ceil(all / 2);
}

/** A probe of this path is the health check that gRPC servers have in common (grpc/health/v1/health.proto). */
export const grpcHealthPath = '/grpc.health.v1.Health/Check';
