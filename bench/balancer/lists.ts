import type { Contestant } from './contestant.ts';
import { haproxy } from './contestants/haproxy.ts';
import { nginx } from './contestants/nginx.ts';
import { raw } from './contestants/raw.ts';
import { svc } from './contestants/svc.ts';
import type { Workload } from './workload.ts';
import { addedLatencyWorkload } from './workloads/added-latency.ts';
import { eventsWorkload } from './workloads/events.ts';
import { idleWorkloads } from './workloads/idle-streams.ts';
import { requestWorkloads } from './workloads/requests.ts';
import { threadsWorkload } from './workloads/threads.ts';

/** All contestants. */
export const allContestants: readonly Contestant[] = [svc, haproxy, nginx, raw];

/** All workloads, in run order. */
export const allWorkloads: readonly Workload[] = [
  ...requestWorkloads,
  eventsWorkload,
  addedLatencyWorkload,
  ...idleWorkloads,
  threadsWorkload,
];

/** Returns the items with the given names, or all without names; throws on an unknown name. */
export function named<Item extends { readonly name: string }>(items: readonly Item[], names: readonly string[]): readonly Item[] {
  if (names.length === 0) return items;
  return names.map((name) => {
    const found = items.find((item) => item.name === name);
    if (found === undefined) throw new Error(`There is no ${name}; there are ${items.map((item) => item.name).join(', ')}`);
    return found;
  });
}
