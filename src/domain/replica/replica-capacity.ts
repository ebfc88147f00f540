import type { Fleet } from '../autoscale.ts';
import { keepOrder, type PlannedReplica } from '../plan.ts';
import type { Accelerator, ServiceSpec, Task } from '../task.ts';
import type { OfferRecord, ReplicaRecord } from '../records.ts';

/** The service's targets by accelerator; undefined when all replicas have the same capacity. */
function targetsIn({ replicaPolicy: { targetQpsPerReplica: targets } }: ServiceSpec): AcceleratorTargets | undefined {
  return typeof targets === 'object' ? targets : undefined;
}

function acceleratorAt(offer: OfferRecord): Accelerator | undefined {
  return offer.accelerator === undefined ? undefined : { name: offer.accelerator, count: offer.gpus };
}

const capacityOf = (targets: AcceleratorTargets, accelerator: Accelerator | undefined): number =>
  targetOf(targets, accelerator) ?? smallestTarget(targets);

/** Relative weight of a replica: its target (requests per second) when the file has targets by accelerator, else 1. */
export function replicaWeight(spec: ServiceSpec, offer: OfferRecord | null): number {
  const targets = targetsIn(spec);
  return targets === undefined || offer === null ? 1 : capacityOf(targets, acceleratorAt(offer));
}

/** A warning for users when the file has targets by accelerator, but none for this machine's accelerators. */
export function missingTarget(spec: ServiceSpec, offer: OfferRecord | null): string | undefined {
  const targets = targetsIn(spec);
  if (targets === undefined || offer === null) return undefined;
  const accelerator = acceleratorAt(offer);
  if (targetOf(targets, accelerator) !== undefined) return undefined;
  const what = accelerator === undefined ? 'a machine without accelerators' : `${accelerator.name}:${accelerator.count}`;
  return `target_qps_per_replica has no entry for ${what}; it counts as the smallest one, ${smallestTarget(targets)} requests/s.`;
}

/** Adds what `keepOrder` compares: the price of each replica and, where replicas differ, its capacity. */
export function withCapacity(
  task: Task,
  replicas: readonly ReplicaRecord[],
): readonly (ReplicaRecord & Pick<PlannedReplica, 'qps' | 'hourlyUsd'>)[] {
  const priced = replicas.map((replica) => ({ ...replica, hourlyUsd: replica.offer?.hourlyUsd ?? 0 }));
  const targets = task.service === undefined ? undefined : targetsIn(task.service);
  if (targets === undefined) return priced;
  const toCome = capacityToCome(task, targets);
  return priced.map((replica) => ({
    ...replica,
    qps: replica.offer === null ? toCome : capacityOf(targets, acceleratorAt(replica.offer)),
  }));
}

/** Capacities of the living replicas and of a replica that is still to start. */
export function fleetOf(task: Task, replicas: readonly ReplicaRecord[]): Fleet {
  const targets = task.service === undefined ? undefined : targetsIn(task.service);
  if (targets === undefined) return { living: [], toCome: 1 };
  return { living: keepOrder(withCapacity(task, replicas)).map(({ qps = 1 }) => qps), toCome: capacityToCome(task, targets) };
}

/**
 * Expected capacity of a new replica: of the preferred accelerator, or the largest without a preference, as in
 * SkyServe. If replicas turn out to have less, the next decision requests more of them.
 */
function capacityToCome({ resources }: Task, targets: AcceleratorTargets): number {
  const all = resources.choices.map(({ accelerator }) => capacityOf(targets, accelerator));
  return resources.order === 'ordered' ? (all[0] ?? smallestTarget(targets)) : Math.max(...all);
}

/** Requests per second for each kind of accelerator. Keys are `NAME` or `NAME:COUNT`, as in the service file. */
type AcceleratorTargets = Readonly<Record<string, number>>;

/** Ignores case, separators and the maker's name: `NVIDIA RTX 4090` equals `RTX_4090` and `rtx-4090`. */
function canonical(name: string): string {
  return name
    .toLowerCase()
    .replace(/^(?:nvidia|amd|intel|google)[-_ ]+/, '')
    .replaceAll(/[-_ ]/g, '');
}

/** The target for a machine with these accelerators, if any. An entry with the count overrides a bare name. */
export function targetOf(targets: AcceleratorTargets, accelerator: Accelerator | undefined): number | undefined {
  if (accelerator === undefined) return undefined;
  const name = canonical(accelerator.name);
  const entries = Object.entries(targets).map(([key, qps]) => {
    const [kind = '', count] = key.split(':');
    return { name: canonical(kind), count: count === undefined ? undefined : Number(count), qps };
  });
  const ofName = entries.filter((entry) => entry.name === name);
  return (ofName.find(({ count }) => count === accelerator.count) ?? ofName.find(({ count }) => count === undefined))?.qps;
}

/** For a machine whose accelerators have no entry: the file's smallest target, so the replica is not overloaded. */
export function smallestTarget(targets: AcceleratorTargets): number {
  return Math.min(...Object.values(targets));
}
