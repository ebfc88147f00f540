import type { OccupiedLocation } from '../placement.ts';
import type { ReplicaRecord } from '../records.ts';
import { isAlive } from '../replica/replica-state.ts';

/** Locations where living replicas have a machine, for spreading and for avoiding those where one fails. */
export function locationsOf(replicas: readonly Pick<ReplicaRecord, 'offer' | 'machineId' | 'state'>[]): readonly OccupiedLocation[] {
  return replicas.flatMap(({ offer, machineId, state }) => {
    if (offer === null || machineId === null || !isAlive(state)) return [];
    return [state === 'NOT_READY' ? { ...offer, isFailing: true } : offer];
  });
}
