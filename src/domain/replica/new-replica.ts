import type { ReplicaRecord, ServiceRecord } from '../records.ts';

/** The record of a new replica, of the present version. It has no machine unless `known` gives one. */
export function newReplica(
  service: Pick<ServiceRecord, 'name' | 'version'>,
  known: Pick<ReplicaRecord, 'id' | 'key' | 'createdAt'> & Partial<ReplicaRecord>,
): ReplicaRecord {
  return {
    service: service.name,
    version: service.version,
    state: 'PENDING',
    offer: null,
    machineId: null,
    address: null,
    launchedAt: null,
    startedAt: null,
    firstReadyAt: null,
    readySince: null,
    firstProbeFailureAt: null,
    endCause: null,
    reason: null,
    endRequestedAt: null,
    endedAt: null,
    revision: 0,
    ...known,
  };
}
