import type { ReplicaPolicy } from '../domain/task.ts';
import { fileScaler, requestPolicies, type RequestPolicy } from './request-policies.ts';
import { leastReplicaSeconds, runScale, usualUtilisation, type ScalePoint, type ScaleTrace } from './scale-world.ts';

/** Interval of the recorded points, s. Availability is counted over them. */
export const pointSeconds = 10;

/** The first seconds of a trace: not scored, because the replicas of the start are arbitrary. */
export const unscoredSeconds = 600;

/** The load of so many first seconds decides how many replicas there are at the start. */
const startSeconds = 300;

/** A request that waits longer for a replica is late, s. */
const lateAfterSeconds = 5;

/** What a simulation over requests compares. */
export interface RequestQuestion {
  readonly trace: ScaleTrace;
  /** Wall time of the first second, ms, for schedules; undefined when the trace has no dates. */
  readonly startedAt: number | undefined;
  /** Of the service file. */
  readonly policy: ReplicaPolicy;
  /** Policies beside the one of the file. */
  readonly compared: readonly (keyof typeof requestPolicies)[];
}

/** How one policy did. Shares are from 0 to 1. */
export interface RequestScore {
  readonly policy: string;
  readonly kind: RequestPolicy['kind'] | 'bound';
  readonly summary: string;
  /** Replica-hours relative to the bound. */
  readonly cost: number;
  readonly replicaHours: number;
  /** Share of the time in which a request waits at most 5 s. */
  readonly available: number;
  readonly failed: number;
  readonly late: number;
  readonly meanWaitSeconds: number;
  readonly changesPerHour: number;
}

/** The scores of all policies, and their courses for charts. */
export interface RequestAnswer {
  /** The file's policy first, the bound last. */
  readonly scores: readonly RequestScore[];
  readonly courses: readonly { readonly policy: string; readonly points: readonly ScalePoint[] }[];
}

/** The name of the file's own policy in results. */
export const filePolicy = 'file';

/** Runs the file's policy and the compared ones over the same requests. */
export function simulateRequests({ trace, startedAt, policy, compared }: RequestQuestion): RequestAnswer {
  const least = leastReplicaSeconds(trace);
  const entries: readonly (readonly [string, RequestPolicy])[] = [
    [filePolicy, fileScaler(policy)],
    ...compared.map((name) => [name, requestPolicies[name]] as const),
  ];
  const runs = entries.map(([name, { kind, summary, scaler }]) => {
    const { series, ...result } = runScale(trace, scaler(policy, { capacityQps: trace.capacityQps, startedAt }), {
      initialReplicas: startReplicas(trace, policy),
      pointEverySeconds: pointSeconds,
    });
    const score: RequestScore = {
      policy: name,
      kind,
      summary,
      cost: result.replicaSeconds / least,
      replicaHours: result.replicaSeconds / 3_600,
      available: availability(series, trace.capacityQps),
      failed: result.failed,
      late: result.late,
      meanWaitSeconds: result.meanWaitSeconds,
      changesPerHour: result.changesPerHour,
    };
    return { score, course: { policy: name, points: series } };
  });
  const bound: RequestScore = {
    policy: 'bound',
    kind: 'bound',
    summary: 'the fewest replicas that make no request late, with hindsight',
    cost: 1,
    replicaHours: least / 3_600,
    available: 1,
    failed: 0,
    late: 0,
    meanWaitSeconds: 0,
    changesPerHour: 0,
  };
  return { scores: [...runs.map(({ score }) => score), bound], courses: runs.map(({ course }) => course) };
}

/** The replicas of the first minutes: as the world has them by itself, within the bounds of the file. */
export function startReplicas({ arrivals, capacityQps }: ScaleTrace, { minReplicas, maxReplicas }: ReplicaPolicy): number {
  const first = arrivals.slice(0, startSeconds);
  const rate = first.reduce((sum, count) => sum + count, 0) / first.length;
  return Math.min(maxReplicas, Math.max(1, minReplicas, Math.ceil(rate / (usualUtilisation * capacityQps))));
}

/** Share of the time in which requests are late although the file's policy has the most replicas that it may have. */
export function limitedShare({ courses }: RequestAnswer, { trace, policy }: RequestQuestion): number {
  const points = courses[0]?.points.filter(({ second }) => second >= unscoredSeconds) ?? [];
  const limited = points.filter((point) => point.launched >= policy.maxReplicas && isLate(point, trace.capacityQps));
  return limited.length / Math.max(1, points.length);
}

/** Whether a request that arrives at a point waits too long. */
export function isLate({ backlog, ready }: ScalePoint, capacityQps: number): boolean {
  return backlog > lateAfterSeconds * ready * capacityQps;
}

/** Share of the scored time in which a request is not late. */
export function availability(points: readonly ScalePoint[], capacityQps: number): number {
  const scored = points.filter(({ second }) => second >= unscoredSeconds);
  return scored.filter((point) => !isLate(point, capacityQps)).length / Math.max(1, scored.length);
}
