import { isEnded } from '../../domain/replica-state.ts';
import type { ListedMachine, Provider } from '../../providers/provider.ts';
import type { Loop } from '../../shared/loop.ts';
import type { ReplicaRecord } from '../../store/records.ts';
import type { ServiceContext } from './service-context.ts';
import { subjectEvent } from '../subject-event.ts';

/**
 * Removes machines that carry this service's key but belong to no replica that is alive or being removed: nothing leaks after a crash. `all`:
 * there are no such replicas any more, and what places made beside machines goes as well, and its buckets. False when a place could not be searched or a bucket is left.
 */
export async function removeOrphans(context: ServiceContext, signal: AbortSignal, all = false): Promise<boolean> {
  let isComplete = true;
  for (const provider of await sweptPlaces(context)) {
    try {
      const machines = await provider.list({ 'svc-service-key': context.key }, { signal });
      // Read after the machines: a replica is recorded before its machine is asked for.
      const replicas = all ? [] : await context.store.replicas.list(context.name);
      const known = new Map(replicas.filter((replica) => !isEnded(replica.state)).map((replica) => [String(replica.id), replica]));
      for (const machine of machines) {
        const replica = known.get(machine.tags['svc-replica'] ?? '');
        if (replica !== undefined && mayOwn(replica, machine, provider.name)) continue;
        await provider.destroy(machine.id, { signal });
        const message = `Machine ${machine.id} of ${provider.name} belonged to no replica and was removed.`;
        const at = context.clock.now();
        await context.store.events.append(subjectEvent(context, { at, cause: 'orphan-removed', message }));
      }
      if (all) await provider.release(context.key, { signal });
    } catch (error) {
      isComplete = false;
      if (!signal.aborted) context.log.warn({ err: error, place: provider.name }, 'a place could not be searched for left-over machines');
    }
  }
  return all ? (await removeBuckets(context, signal)) && isComplete : isComplete;
}

/** True when none is left. */
async function removeBuckets(context: ServiceContext, signal: AbortSignal): Promise<boolean> {
  try {
    await context.deployment.remove(signal);
    return true;
  } catch (error) {
    if (!signal.aborted) context.log.warn({ err: error }, 'a bucket could not be removed');
    return false;
  }
}

/** A replica that has no machine yet may be given any of those asked for; afterwards what others gave is surplus. */
function mayOwn({ place, machineId }: ReplicaRecord, machine: ListedMachine, provider: string): boolean {
  return machineId === null || (machine.id === machineId && place?.provider === provider);
}

/** The enabled places, and those where replicas are recorded, enabled or not. */
async function sweptPlaces(context: ServiceContext): Promise<readonly Provider[]> {
  const enabled = await context.providers();
  const recorded = (await context.store.replicas.list(context.name)).flatMap(({ place }) => place?.provider ?? []);
  const missing = new Set(recorded.filter((name) => !enabled.some((provider) => provider.name === name)));
  return [...enabled, ...(await Promise.all([...missing].map((name) => context.provider(name))))];
}

/** How often the places are searched for machines that no record knows, ms. */
const sweepEveryMs = 60_000;

/** Searches in a loop of its own, so that a place that is slow to answer keeps nobody from hearing of lost machines. */
export function orphanLoop(context: ServiceContext): Loop {
  return {
    name: 'orphans',
    everyMs: sweepEveryMs,
    async tick(signal) {
      await removeOrphans(context, signal);
    },
  };
}
