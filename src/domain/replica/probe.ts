import type { SuspectReason } from '../balancer-link.ts';
import type { ReplicaEvent, ReplicaState } from './replica-state.ts';
import type { ReadinessProbe } from '../task.ts';

interface ProbedReplica {
  readonly state: ReplicaState;
  /** When the first of the consecutive failed probes was sent, ms; null when the last probe passed or there was none. */
  readonly firstProbeFailureAt: number | null;
  /** Absent: no. A silent replica is first replaced; failed probes do not end it. */
  readonly isSilent?: boolean;
}

interface ProbeVerdict {
  readonly event: ReplicaEvent | undefined;
  readonly firstProbeFailureAt: number | null;
}

/**
 * Verdict on a probe. A starting replica may fail for the initial delay, one that was ready for the failure threshold.
 * Both count from when the first of the consecutive failed probes was sent (`sentAt`, by default `now`), as in SkyServe.
 */
export function judgeProbe(replica: ProbedReplica, passed: boolean, probe: ReadinessProbe, now: number, sentAt = now): ProbeVerdict {
  if (passed) return { event: { type: 'probe-passed' }, firstProbeFailureAt: null };
  const since = replica.firstProbeFailureAt ?? sentAt;
  const failingMs = now - since;
  const { state } = replica;
  // A late result for a replica that is not running yet or is terminating has no meaning.
  if (state !== 'READY' && state !== 'STARTING' && state !== 'NOT_READY')
    return { event: undefined, firstProbeFailureAt: replica.firstProbeFailureAt };
  if (state === 'READY') return { event: { type: 'probe-failed' }, firstProbeFailureAt: since };
  const limitSeconds = state === 'STARTING' ? probe.initialDelaySeconds : probe.failureThresholdSeconds;
  if (failingMs < limitSeconds * 1_000 || replica.isSilent === true) return { event: undefined, firstProbeFailureAt: since };
  return { event: { type: 'stop-requested', cause: state === 'STARTING' ? 'initial-delay' : 'probing' }, firstProbeFailureAt: since };
}

/** Starting replicas are probed often, so that they serve within a second of being able to. */
const startingIntervals = [
  { untilMs: 10_000, everyMs: 250 },
  { untilMs: 60_000, everyMs: 500 },
  { untilMs: Number.POSITIVE_INFINITY, everyMs: 1_000 },
] as const;
/** A NOT_READY replica is probed more often than a ready one, so that it returns soon. */
const notReadyIntervalMs = 1_000;

/** Time from the end of one probe to the next, ms. */
export function nextProbeMs(state: ReplicaState, sinceStartMs: number, probe: ReadinessProbe): number {
  const steadyMs = probe.intervalSeconds * 1_000;
  if (state === 'STARTING') return startingIntervals.find(({ untilMs }) => sinceStartMs < untilMs)?.everyMs ?? steadyMs;
  return state === 'NOT_READY' ? Math.min(steadyMs, notReadyIntervalMs) : steadyMs;
}

/** A ready replica whose probe takes this long gets no new requests until the result is known, ms: it may hang. */
export const slowProbeMs = 2_000;

/**
 * Whether a slow replica may leave the endpoint set. At most half may, otherwise the rest would be overloaded next.
 * `serving`: replicas that get requests now, including this one. `all`: also those that have stepped aside.
 */
export function mayStepAside(serving: number, all: number): boolean {
  return serving - 1 >= Math.ceil(all / 2);
}

/**
 * A silent replica whose probe takes this long counts as hung, ms, even when no other replica serves. It becomes
 * NOT_READY within 5 s, because the silence takes 1 s to notice.
 */
export const hungProbeMs = 3_000;

/** A ready replica whose probe has been under way for `waitedMs`, at least `slowProbeMs`. */
interface SlowReplica {
  readonly state: ReplicaState;
  readonly waitedMs: number;
  /** Whether a balancer reports that requests there wait longer for their first byte than responses usually take. */
  readonly isSilent: boolean;
  /** See `mayStepAside`. */
  readonly serving: number;
  readonly all: number;
}

/**
 * `step-aside`: no new requests until the probe's result is known; requests under way finish. `hung`: it answers
 * neither the probe nor requests, so the probe counts as failed even before its timeout.
 */
export function judgeSlowProbe({ state, waitedMs, isSilent, serving, all }: SlowReplica): 'await' | 'step-aside' | 'hung' {
  if (state !== 'READY') return 'await';
  if (mayStepAside(serving, all)) return isSilent ? 'hung' : 'step-aside';
  return isSilent && waitedMs >= hungProbeMs ? 'hung' : 'await';
}

/** A balancer reports a silent replica every second. An older report no longer describes the present, ms. */
export const silenceReportMs = 2_000;

/** For this long after a passed probe, `timeout` and `silent` are ignored, ms: requests there may just take long. */
const suspicionPauseMs = 2_000;

/** Whether a balancer's suspicion triggers a probe at once. `sinceProbeMs`: time since the end of the last probe. */
export function needsProbe(reason: SuspectReason, sinceProbeMs: number): boolean {
  return reason === 'refused' || reason === 'reset' || sinceProbeMs >= suspicionPauseMs;
}

/** A probe of this path uses the standard gRPC health check (grpc/health/v1/health.proto). */
export const grpcHealthPath = '/grpc.health.v1.Health/Check';
