import type { ReplicaPolicy } from '../task.ts';

/** How often the autoscaler decides, ms; delays are counted in these ticks (SkyServe's constant). */
const decisionIntervalMs = 20_000;

/** How often it decides while no replica is wanted, ms: a first request should not wait (SkyServe's constant). */
const idleDecisionIntervalMs = 5_000;

/** What the autoscaler remembers between decisions. */
export interface AutoscalerMemory {
  readonly target: number;
  /** Decisions in a row that wanted more. */
  readonly upCount: number;
  /** Decisions in a row that wanted less. */
  readonly downCount: number;
}

/** A service begins with its smallest number of replicas. */
export function initialAutoscaler(policy: ReplicaPolicy): AutoscalerMemory {
  return { target: policy.minReplicas, upCount: 0, downCount: 0 };
}

/**
 * One decision over what is wanted now, exactly as SkyServe's autoscaler with hysteresis makes it: a change is adopted when it was wanted in
 * `floor(delay / 20 s)` decisions in a row, at once from zero, and an agreeing decision forgets what was counted.
 */
export function adoptWanted(memory: AutoscalerMemory, policy: ReplicaPolicy, wanted: number): AutoscalerMemory {
  if (memory.target === 0) return { ...memory, target: wanted };
  if (wanted > memory.target) {
    const upCount = memory.upCount + 1;
    return upCount >= ticks(policy.upscaleDelaySeconds)
      ? { target: wanted, upCount: 0, downCount: 0 }
      : { target: memory.target, upCount, downCount: 0 };
  }
  if (wanted < memory.target) {
    const downCount = memory.downCount + 1;
    return downCount >= ticks(policy.downscaleDelaySeconds)
      ? { target: wanted, upCount: 0, downCount: 0 }
      : { target: memory.target, upCount: 0, downCount };
  }
  return { target: memory.target, upCount: 0, downCount: 0 };
}

/** Time until the next decision, ms. */
export function nextDecisionMs(memory: AutoscalerMemory): number {
  return memory.target === 0 ? idleDecisionIntervalMs : decisionIntervalMs;
}

const ticks = (delaySeconds: number): number => Math.floor((delaySeconds * 1_000) / decisionIntervalMs);
