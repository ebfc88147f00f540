import { smallestTarget, targetOf, type AcceleratorTargets } from '../../domain/accelerator-targets.ts';
import type { Fleet } from '../../domain/autoscale/load.ts';
import { keepOrder } from '../../domain/plan.ts';
import type { Accelerator, ServiceSpec, Task } from '../../domain/task.ts';
import type { PlaceRecord, ReplicaRecord } from '../../store/records.ts';

/** The service's targets by accelerator; undefined where all replicas are alike. */
function targetsIn({ replicaPolicy: { targetQpsPerReplica: targets } }: ServiceSpec): AcceleratorTargets | undefined {
  return typeof targets === 'object' ? targets : undefined;
}

function acceleratorAt(place: PlaceRecord): Accelerator | undefined {
  return place.accelerator === undefined ? undefined : { name: place.accelerator, count: place.gpus };
}

const capacityOf = (targets: AcceleratorTargets, accelerator: Accelerator | undefined): number =>
  targetOf(targets, accelerator) ?? smallestTarget(targets);

/** What a replica at a place can take beside others: requests per second where the file says it for each accelerator, else 1 for each. */
export function replicaWeight(spec: ServiceSpec, place: PlaceRecord | null): number {
  const targets = targetsIn(spec);
  return targets === undefined || place === null ? 1 : capacityOf(targets, acceleratorAt(place));
}

/** A sentence for people when the file has targets for each accelerator, but none for those of a place. */
export function missingTarget(spec: ServiceSpec, place: PlaceRecord | null): string | undefined {
  const targets = targetsIn(spec);
  if (targets === undefined || place === null) return undefined;
  const accelerator = acceleratorAt(place);
  if (targetOf(targets, accelerator) !== undefined) return undefined;
  const what = accelerator === undefined ? 'a machine without accelerators' : `${accelerator.name}:${accelerator.count}`;
  return `target_qps_per_replica has no entry for ${what}; it counts as the smallest one, ${smallestTarget(targets)} requests/s.`;
}

/** Adds what each replica can take, where they differ in that. */
export function withCapacity(task: Task, replicas: readonly ReplicaRecord[]): readonly (ReplicaRecord & { readonly qps?: number })[] {
  const targets = task.service === undefined ? undefined : targetsIn(task.service);
  if (targets === undefined) return replicas;
  const toCome = capacityToCome(task, targets);
  return replicas.map((replica) => ({
    ...replica,
    qps: replica.place === null ? toCome : capacityOf(targets, acceleratorAt(replica.place)),
  }));
}

/** What the living replicas can take, and one that is still to come. */
export function fleetOf(task: Task, replicas: readonly ReplicaRecord[]): Fleet {
  const targets = task.service === undefined ? undefined : targetsIn(task.service);
  if (targets === undefined) return { living: [], toCome: 1 };
  return { living: keepOrder(withCapacity(task, replicas)).map(({ qps = 1 }) => qps), toCome: capacityToCome(task, targets) };
}

/**
 * Of the accelerators the file may get, the one preferred, or that takes most where it has no preference, as SkyServe reckons: when too few come of
 * it, the next decision asks for more.
 */
function capacityToCome({ resources }: Task, targets: AcceleratorTargets): number {
  const all = resources.choices.map(({ accelerator }) => capacityOf(targets, accelerator));
  return resources.order === 'ordered' ? (all[0] ?? smallestTarget(targets)) : Math.max(...all);
}
