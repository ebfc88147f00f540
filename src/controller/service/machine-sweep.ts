import { placeName } from '../../domain/place-name.ts';
import { isAlive, isEnded, type EndCause } from '../../domain/replica-state.ts';
import { assertMachineId, type ListedMachine, type MachineId, type MachineStatus, type Provider } from '../../providers/provider.ts';

import { isoTime } from '../../shared/clock.ts';
import type { Loop } from '../../shared/loop.ts';
import type { PlaceRecord, ReplicaRecord } from '../../store/records.ts';
import { offerOf } from '../recorded-machines.ts';
import type { ServiceContext } from './service-context.ts';
import { subjectEvent } from '../subject-event.ts';

/** A replica whose place says that its machine is gone. */
export interface LostMachine {
  readonly replicaId: number;
  readonly cause: EndCause;
  readonly reason: string;
}

/** Asks each place once about all machines of living replicas. A place that cannot be asked says nothing about its machines. */
async function inspectMachines(
  context: ServiceContext,
  replicas: readonly ReplicaRecord[],
  signal: AbortSignal,
): Promise<readonly LostMachine[]> {
  const lost: LostMachine[] = [];
  for (const [name, group] of Map.groupBy(replicas.flatMap(machineOf), ({ place }) => place.provider)) {
    try {
      const provider = await context.provider(name);
      const ids = group.map(({ machineId }) => machineId);
      const statuses = await provider.inspect(ids, { signal });
      for (const { replicaId, machineId, place } of group) {
        const loss = lossOf(statuses.get(machineId), `Its machine ${machineId} at ${placeName(place)}`);
        if (loss === undefined) continue;
        if (loss.cause !== undefined) lost.push({ replicaId, cause: loss.cause, reason: loss.reason });
        // Who takes spot machines back has none to give: the replacement is to be looked for elsewhere first.
        if (loss.cause !== 'machine-lost' && place.spot)
          context.history.refused(offerOf(place), { kind: 'capacity', scope: 'zone', reason: loss.reason }, context.clock.now());
      }
    } catch (error) {
      if (!signal.aborted) context.log.warn({ err: error, place: name }, 'a place could not be asked about its machines');
    }
  }
  return lost;
}

/**
 * What a place says of a machine that it took or will take; undefined when all is well. Without a cause it only may take it: the replica stays, but
 * no other one should go there.
 */
function lossOf(
  status: MachineStatus | undefined,
  machine: string,
): { readonly cause: 'preempted' | 'interruption' | 'machine-lost' | undefined; readonly reason: string } | undefined {
  if (status?.state === 'gone') {
    return { cause: status.reason === 'preempted' ? 'preempted' : 'machine-lost', reason: `${machine} is gone (${status.reason}).` };
  }
  // Nobody but its owner stops a machine.
  if (status?.state === 'stopped') return { cause: 'machine-lost', reason: `${machine} was stopped.` };
  if (status?.state !== 'running' || status.notice === undefined) return undefined;
  const { kind, at } = status.notice;
  if (kind === 'rebalance') return { cause: undefined, reason: `${machine} may be taken back.` };
  const when = at === undefined ? 'within minutes' : `at ${isoTime(at)}`;
  return { cause: 'interruption', reason: `${machine} is taken back by its place ${when}.` };
}

/** The machine of a living replica, as a list of one or none. */
function machineOf({
  id,
  state,
  machineId,
  place,
}: ReplicaRecord): readonly { readonly replicaId: number; readonly machineId: MachineId; readonly place: PlaceRecord }[] {
  if (!isAlive(state) || machineId === null || place === null) return [];
  assertMachineId(machineId);
  return [{ replicaId: id, machineId, place }];
}

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

/** How often the places are asked whether machines still exist, ms. */
const inspectEveryMs = 5_000;
/** Every so many inspections the places are searched for machines that no record knows. */
const inspectionsPerSweep = 12;

/** Looks after the machines in a loop of its own, so that a place that is slow to answer holds nothing else up. */
export function machineLoop(context: ServiceContext, lost: (machine: LostMachine) => Promise<void>): Loop {
  let inspections = 0;
  return {
    name: 'machines',
    everyMs: inspectEveryMs,
    async tick(signal) {
      const replicas = await context.store.replicas.list(context.name);
      for (const machine of await inspectMachines(context, replicas, signal)) await lost(machine);
      if (inspections % inspectionsPerSweep === 0) await removeOrphans(context, signal);
      inspections += 1;
    },
  };
}
