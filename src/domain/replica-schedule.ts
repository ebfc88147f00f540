import { lastMoment } from './cron.ts';
import type { ReplicaPolicy, ScheduleEntry } from './task.ts';

/** The policy with the bounds that its schedule gives it at a time (ms since the epoch). */
export function policyAt(policy: ReplicaPolicy, now: number): ReplicaPolicy {
  const entry = entryAt(policy.schedule ?? [], now);
  if (entry === undefined) return policy;
  const { minReplicas, maxReplicas } = entry;
  return { ...policy, minReplicas, maxReplicas };
}

/** The entry whose last moment is the latest; of two with the same moment, the later one in the file. */
function entryAt(schedule: readonly ScheduleEntry[], now: number): ScheduleEntry | undefined {
  let latest: { readonly entry: ScheduleEntry; readonly at: number } | undefined;
  for (const entry of schedule) {
    const at = lastMoment(entry.cron, entry.timezone, now);
    if (at !== undefined && (latest === undefined || at >= latest.at)) latest = { entry, at };
  }
  return latest?.entry;
}

/** Fewest and most replicas at any time of the schedule. */
export function widestBounds(policy: ReplicaPolicy): Pick<ReplicaPolicy, 'minReplicas' | 'maxReplicas'> {
  const bounds = [policy, ...(policy.schedule ?? [])];
  return {
    minReplicas: Math.min(...bounds.map(({ minReplicas }) => minReplicas)),
    maxReplicas: Math.max(...bounds.map(({ maxReplicas }) => maxReplicas)),
  };
}
