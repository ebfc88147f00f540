import type { OccupiedLocation } from '../placement.ts';
import type { ReplicaRecord } from '../records.ts';
import { isAlive } from '../replica/replica-state.ts';

/** Locations where living replicas have a machine, for spreading. */
export function locationsOf(replicas: readonly Pick<ReplicaRecord, 'offer' | 'machineId' | 'state'>[]): readonly OccupiedLocation[] {
  return replicas.flatMap(({ offer, machineId, state }) => (offer !== null && machineId !== null && isAlive(state) ? [offer] : []));
}
