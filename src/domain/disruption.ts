/**
 * How many of a service's machines a provider's own operations, such as the drain of a Kubernetes node, may end at once.
 * `any`: nothing needs protection.
 */
export type AllowedDisruption = 'any' | 'one' | 'none';

/** A service with fewer ready replicas than desired, since the last one was lost. */
export interface Shortage {
  readonly ready: number;
  /** Of the last loss, monotonic ms. */
  readonly since: number;
  /** Of the first loss that blocks drains, monotonic ms. */
  readonly firstAt: number;
}

/** After this time, ms, a shortage does not block drains any more. GKE's node upgrades wait an hour for a budget. */
const patienceMs = 1_800_000;
/** The same after the first loss: replicas may be lost again and again. */
const longestPatienceMs = 3_600_000;

/**
 * The shortage that follows `before`; undefined: there is none. Each loss of a ready replica restarts the time. A loss in
 * a time without a block restarts both: the drain that caused it must not end the next replica too.
 */
export function nextShortage(before: Shortage | undefined, replicas: ReplicaCounts, now: number): Shortage | undefined {
  const { ready, target } = replicas;
  if (ready >= target) return undefined;
  if (before === undefined) return { ready, since: now, firstAt: now };
  if (ready >= before.ready) return { ...before, ready };
  return { ready, since: now, firstAt: blocks(before, now) ? before.firstAt : now };
}

/**
 * One replica may end while no other is missing. Its replacement must be ready before the next one ends, but a shortage
 * that lasts, as without capacity, must not block a node's drain for ever. `target` 0: the service sleeps or ends.
 */
export function allowedDisruption({ target }: ReplicaCounts, shortage: Shortage | undefined, now: number): AllowedDisruption {
  if (target === 0) return 'any';
  return shortage !== undefined && blocks(shortage, now) ? 'none' : 'one';
}

const blocks = ({ since, firstAt }: Shortage, now: number): boolean => now - since < patienceMs && now - firstAt < longestPatienceMs;

interface ReplicaCounts {
  readonly ready: number;
  /** Desired number of ready replicas. */
  readonly target: number;
}
