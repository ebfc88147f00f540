import { concurrencyStepSeconds, desiredByConcurrency, type PanicMemory } from './autoscale-concurrency.ts';
import { type ForecastMemory, forecastStep, requiredReplicas, stepSeconds } from './autoscale-forecast.ts';
import { areSaturated } from './engine-metrics.ts';
import type { LoadSignals } from './load-signals.ts';
import type { ReplicaPolicy } from './task.ts';

/** Time window over which requests are counted, ms (SkyServe's constant). */
export const rateWindowMs = 60_000;

/** Requests per second over the window. */
export function requestRate({ requestsInWindow }: Pick<ServiceLoad, 'requestsInWindow'>): number {
  return requestsInWindow / (rateWindowMs / 1_000);
}

/** Replicas required at equal capacity: `ceil(rate / target)`, as in SkyServe's request-rate autoscaler. */
export function desiredByRate(targetQps: number, load: Pick<ServiceLoad, 'requestsInWindow'>): number {
  return Math.ceil(requestRate(load) / targetQps);
}

/** The replicas that a load requires, before the bounds of the policy. */
const rules = {
  fixed: (policy: ReplicaPolicy) => policy.minReplicas,
  requestRate: (policy: ReplicaPolicy, load: ServiceLoad) =>
    typeof policy.targetQpsPerReplica === 'number' ? desiredByRate(policy.targetQpsPerReplica, load) : policy.minReplicas,
  instanceAware: (_policy: ReplicaPolicy, load: ServiceLoad) => desiredByCapacity(load),
} as const;

function ruleOf({ targetQpsPerReplica }: ReplicaPolicy): keyof typeof rules {
  if (targetQpsPerReplica === undefined) return 'fixed';
  return typeof targetQpsPerReplica === 'number' ? 'requestRate' : 'instanceAware';
}

/** Replicas that the load requires, within the policy's bounds. At least one while a request is queued or under way. */
export function desiredReplicas(policy: ReplicaPolicy, load: ServiceLoad): number {
  return bounded(policy, load, rules[ruleOf(policy)](policy, load));
}

function bounded(policy: ReplicaPolicy, load: ServiceLoad, desired: number): number {
  const atLeast = Math.max(policy.minReplicas, load.busy > 0 ? 1 : 0);
  return Math.min(policy.maxReplicas, Math.max(atLeast, desired));
}

/** A target within the bounds of the policy, which an update may have changed. */
export function withinBounds({ minReplicas, maxReplicas }: ReplicaPolicy, target: number): number {
  return Math.min(maxReplicas, Math.max(minReplicas, target));
}

/**
 * One decision of the policy's autoscaler. Request rate and concurrency adopt the required number once the load has
 * required it for long enough. Without the signals that it needs, an autoscaler does not scale down.
 */
export function decideTarget(memory: AutoscalerMemory, policy: ReplicaPolicy, load: ServiceLoad): AutoscalerMemory {
  const { autoscaler = 'request_rate' } = policy;
  return isAutoscaled(policy) ? deciders[autoscaler](memory, policy, load) : deciders.request_rate(memory, policy, load);
}

type Decider = (memory: AutoscalerMemory, policy: ReplicaPolicy, load: ServiceLoad) => AutoscalerMemory;

const deciders: Readonly<Record<NonNullable<ReplicaPolicy['autoscaler']>, Decider>> = {
  request_rate(memory, policy, load) {
    const desired = desiredReplicas(policy, load);
    const isBlind = load.isComplete === false && desired < memory.target;
    return isBlind ? memory : adoptDesired(memory, policy, desired);
  },
  concurrency(memory, policy, load) {
    const { signals } = load;
    if (signals === undefined) return { ...memory, target: bounded(policy, load, memory.target) };
    const { desired, panic } = desiredByConcurrency(policy.targetOngoingRequestsPerReplica ?? 1, signals, memory);
    const wanted = bounded(policy, load, Math.max(desired, requiredByEngines(memory, signals)));
    if (mayMissLoad(load) && wanted < memory.target) return memory;
    // A replica that is ended before another one is ready would only be launched again.
    const downscaleDelaySeconds = Math.max(policy.downscaleDelaySeconds, signals.coldStartSeconds);
    const most = wanted < memory.target ? Math.max(wanted, memory.most ?? 0) : 0;
    const delays = { upscaleDelaySeconds: policy.upscaleDelaySeconds, downscaleDelaySeconds };
    const after = adoptDesired(memory, delays, wanted < memory.target ? most : wanted, concurrencyStepSeconds);
    return { ...after, ...(after.downCount > 0 && { most }), ...(panic !== undefined && { panic }) };
  },
  forecast(memory, policy, load) {
    const { signals } = load;
    if (signals === undefined || signals.recent.length === 0) return { ...memory, target: bounded(policy, load, memory.target) };
    const forecast = forecastStep(
      memory.forecast,
      {
        targetQps: typeof policy.targetQpsPerReplica === 'number' ? policy.targetQpsPerReplica : 1,
        ttfbSeconds: policy.targetTtfbSeconds,
        ongoingPerReplica: policy.targetOngoingRequestsPerReplica,
        maxReplicas: policy.maxReplicas,
      },
      signals,
    );
    const target = bounded(policy, load, Math.max(requiredReplicas(forecast), requiredByEngines(memory, signals)));
    // An incomplete count looks like a falling load, and nothing is to be learnt from it.
    if (load.isComplete === false) return { ...memory, target: Math.max(target, memory.target) };
    return { target: mayMissLoad(load) ? Math.max(target, memory.target) : target, upCount: 0, downCount: 0, forecast };
  },
};

/** Replicas that saturated engines require: no fewer than before, and one more than are ready. 0 while they have room. */
function requiredByEngines({ target }: AutoscalerMemory, { engines, readyReplicas }: LoadSignals): number {
  return engines !== undefined && areSaturated(engines) ? Math.max(target, readyReplicas + 1) : 0;
}

/** Whether the load may be higher than what was counted. */
const mayMissLoad = ({ isComplete, signals }: ServiceLoad): boolean => isComplete === false || (signals?.engines?.missing ?? 0) > 0;

const isAutoscaled = ({ targetQpsPerReplica, targetOngoingRequestsPerReplica }: ReplicaPolicy): boolean =>
  targetQpsPerReplica !== undefined || targetOngoingRequestsPerReplica !== undefined;

/**
 * Replicas that the rate requires when capacities differ: the fewest living ones, in `keepOrder`, that handle it, and
 * new ones for the rest. With equal targets: `ceil(rate / target)`. SkyServe's instance-aware autoscaler has the same
 * intent, but counts dead replicas as living and does not remove the replicas that its count left out.
 */
export function desiredByCapacity({ fleet, ...load }: Pick<ServiceLoad, 'requestsInWindow' | 'fleet'>): number {
  const rate = requestRate(load);
  let taken = 0;
  for (const [index, qps] of fleet.living.entries()) {
    if (taken >= rate) return index;
    taken += qps;
  }
  return fleet.living.length + Math.ceil(Math.max(0, rate - taken) / fleet.toCome);
}

/** Interval of decisions, ms. Delays are counted in these ticks (SkyServe's constant). */
const decisionIntervalMs = 20_000;

/** The same while no replica is desired, ms: shorter, so that a first request does not wait (SkyServe's constant). */
const idleDecisionIntervalMs = 5_000;

/** State of the autoscaler between decisions. */
export interface AutoscalerMemory {
  readonly target: number;
  /** Consecutive decisions that required more (`upCount`) or fewer (`downCount`) replicas. */
  readonly upCount: number;
  readonly downCount: number;
  /** Of `concurrency`: most replicas that a decision of `downCount` required, and its panic. */
  readonly most?: number;
  readonly panic?: PanicMemory;
  /** Of `forecast`. */
  readonly forecast?: ForecastMemory;
}

/** Initial state: a service starts with its smallest number of replicas. */
export function initialAutoscaler(policy: ReplicaPolicy): AutoscalerMemory {
  return { target: policy.minReplicas, upCount: 0, downCount: 0 };
}

/**
 * One decision, by the rules of SkyServe's autoscaler with hysteresis. A change is adopted after `floor(delay / 20 s)`
 * consecutive decisions that required it, and at once from zero. A decision for no change resets the counters.
 */
function adoptDesired(
  memory: AutoscalerMemory,
  { upscaleDelaySeconds, downscaleDelaySeconds }: Pick<ReplicaPolicy, 'upscaleDelaySeconds' | 'downscaleDelaySeconds'>,
  desired: number,
  everySeconds = decisionIntervalMs / 1_000,
): AutoscalerMemory {
  const ticks = (delaySeconds: number): number => Math.floor(delaySeconds / everySeconds);
  if (memory.target === 0) return { target: desired, upCount: memory.upCount, downCount: memory.downCount };
  if (desired > memory.target) {
    const upCount = memory.upCount + 1;
    return upCount >= ticks(upscaleDelaySeconds)
      ? { target: desired, upCount: 0, downCount: 0 }
      : { target: memory.target, upCount, downCount: 0 };
  }
  if (desired < memory.target) {
    const downCount = memory.downCount + 1;
    return downCount >= ticks(downscaleDelaySeconds)
      ? { target: desired, upCount: 0, downCount: 0 }
      : { target: memory.target, upCount: 0, downCount };
  }
  return { target: memory.target, upCount: 0, downCount: 0 };
}

/** Time until the next decision, ms. */
export function nextDecisionMs(memory: AutoscalerMemory, policy: Pick<ReplicaPolicy, 'autoscaler'> = {}): number {
  if (policy.autoscaler === 'forecast') return stepSeconds * 1_000;
  if (policy.autoscaler === 'concurrency') return concurrencyStepSeconds * 1_000;
  return memory.target === 0 ? idleDecisionIntervalMs : decisionIntervalMs;
}

interface ArrivalCount {
  /** Time of the report, ms. */
  readonly at: number;
  readonly count: number;
}

/** The arrivals of the last minute. */
export type RequestWindow = readonly ArrivalCount[];

/** Adds the requests that arrived and drops reports older than the window. */
export function addArrivals(window: RequestWindow, now: number, count: number): RequestWindow {
  const recent = window.filter((entry) => entry.at > now - rateWindowMs);
  return count > 0 ? [...recent, { at: now, count }] : recent;
}

/** Requests within the window that ends at `now`. */
export function countArrivals(window: RequestWindow, now: number): number {
  return window.reduce((sum, entry) => (entry.at > now - rateWindowMs && entry.at <= now ? sum + entry.count : sum), 0);
}

/** Input of a decision about the number of replicas. */
export interface ServiceLoad {
  /** Requests that arrived in the last minute, whatever their result. */
  readonly requestsInWindow: number;
  /** Requests that are queued or under way. */
  readonly busy: number;
  readonly fleet: Fleet;
  /** Whether the balancer is connected and a whole window was counted. False: nothing is scaled down. */
  readonly isComplete?: boolean;
  /** Input of `concurrency` and `forecast`. */
  readonly signals?: LoadSignals;
}

/** Capacity of the replicas, requests per second each. For services with a target for each accelerator. */
export interface Fleet {
  /** Of the living replicas, in the order of `keepOrder` in `domain/plan.ts`: the replica kept longest comes first. */
  readonly living: readonly number[];
  /** Capacity of a replica that is still to start, more than 0. */
  readonly toCome: number;
}
