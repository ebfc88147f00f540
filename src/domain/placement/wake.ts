import { locationName } from '../location-name.ts';
import type { PlaceableOffer, PlacementFacts } from '../placement.ts';
import type { ReplicaRecord } from '../records.ts';
import type { Task } from '../task.ts';
import { medianOf } from './rank.ts';

/**
 * Assumed times from an ask to a running machine where nothing was measured, s. Only their order matters much: this
 * machine needs none, SSH hosts and pods start on machines that run, and a cloud boots a machine.
 */
const assumedMachineSeconds = { local: 0, running: 30, booting: 180 } as const;

type Ready = Pick<ReplicaRecord, 'offer' | 'createdAt' | 'launchedAt' | 'firstReadyAt'>;

function machineSeconds({ provider, room }: Pick<PlaceableOffer, 'provider' | 'room'>): number {
  if (provider === 'local') return assumedMachineSeconds.local;
  const isRunning = provider === 'ssh' || provider === 'kubernetes';
  return isRunning && room !== 0 ? assumedMachineSeconds.running : assumedMachineSeconds.booting;
}

/**
 * Expected seconds from a launch to a ready replica, by offer. Where replicas of the service became ready before, it is
 * the median of their times. At other locations it is the assumed time of the machine and the shortest time that the
 * program took at any location.
 */
export function readySeconds(replicas: readonly Ready[]): (offer: PlaceableOffer) => number {
  const ready = replicas.flatMap(({ offer, createdAt, launchedAt, firstReadyAt }) =>
    offer === null || firstReadyAt === null ? [] : [{ offer, seconds: (firstReadyAt - (launchedAt ?? createdAt)) / 1_000 }],
  );
  const measured = new Map(
    [...Map.groupBy(ready, ({ offer }) => locationName(offer))].map(([location, starts]) => [
      location,
      medianOf(starts.map(({ seconds }) => seconds)) ?? 0,
    ]),
  );
  const programs = ready.map(({ offer, seconds }) => Math.max(0, seconds - machineSeconds({ provider: offer.provider, room: undefined })));
  const program = programs.length === 0 ? 0 : Math.min(...programs);
  return (offer) => measured.get(locationName(offer)) ?? machineSeconds(offer) + program;
}

/**
 * How the search for a replica's machine ranks locations by time; undefined where the price comes first. `wake: fastest`
 * holds while requests wait and no replica is ready.
 */
export function wakeOrder(
  { service }: Pick<Task, 'service'>,
  { queued, replicas }: { readonly queued: number; readonly replicas: readonly (Ready & Pick<ReplicaRecord, 'state'>)[] },
): PlacementFacts['readySeconds'] {
  if (service?.replicaPolicy.wake !== 'fastest' || queued === 0) return undefined;
  return replicas.some(({ state }) => state === 'READY') ? undefined : readySeconds(replicas);
}
