import type { Selectable } from 'kysely';
import { isEnded, replicaStates } from '../domain/replica/replica-state.ts';
import type { Driver } from './driver.ts';
import { hasEvent, insertEvent } from './event-repository.ts';
import { fromJsonOrNull, isOfferRecord, isReplicaAddress } from './json-column.ts';
import type { ReplicaRecord } from '../domain/records.ts';
import type { ReplicaTable } from './schema.ts';
import { insertReplica, updateReplica } from './replica-rows.ts';
import { updateService } from './service-repository.ts';
import type { ReplicaRepository } from './store.ts';

const endedStates = replicaStates.filter(isEnded);

/** Replicas of all services in a database. */
export function replicaRepository(driver: Driver): ReplicaRepository {
  const { db } = driver;
  return {
    async list(service) {
      const rows = await db.selectFrom('replicas').selectAll().where('service', '=', service).orderBy('id').execute();
      return rows.map(toRecord);
    },

    async add(seen, replica, event) {
      return driver.write(async (writer) => {
        const changed = await updateService(writer, seen, { nextReplicaId: Math.max(seen.nextReplicaId, replica.id + 1) });
        if (changed === undefined) return undefined;
        // With a reused id, the record of an old replica would be taken for the new replica's.
        if (replica.id < seen.nextReplicaId && (await hasEvent(writer, seen.key, replica.id)))
          throw new Error(`replica id ${replica.id} of "${seen.name}" has been used; the next is ${seen.nextReplicaId}`);
        await insertReplica(writer, replica);
        await insertEvent(writer, event);
        return changed;
      });
    },

    update: (seen, change, event) =>
      driver.write(async (writer) => {
        const changed = await updateReplica(writer, seen, change);
        if (changed !== undefined && event !== undefined) await insertEvent(writer, event);
        return changed;
      }),

    prune: (service, keep) =>
      driver.write(async (writer) => {
        const newest = writer
          .selectFrom('replicas')
          .select('id')
          .where('service', '=', service)
          .where('state', 'in', endedStates)
          .orderBy('id', 'desc')
          .limit(keep);
        await writer
          .deleteFrom('replicas')
          .where('service', '=', service)
          .where('state', 'in', endedStates)
          .where('id', 'not in', newest)
          .execute();
      }),
  };
}

function toRecord(row: Selectable<ReplicaTable>): ReplicaRecord {
  return {
    service: row.service,
    id: row.id,
    version: row.version,
    state: row.state,
    market: row.market,
    key: row.key,
    offer: fromJsonOrNull(row.place, 'replicas.place', isOfferRecord),
    machineId: row.machine_id,
    address: fromJsonOrNull(row.address, 'replicas.address', isReplicaAddress),
    createdAt: row.created_at,
    launchedAt: row.launched_at,
    startedAt: row.started_at,
    firstReadyAt: row.first_ready_at,
    readySince: row.ready_since,
    firstProbeFailureAt: row.first_probe_failure_at,
    endCause: row.end_cause,
    reason: row.reason,
    endRequestedAt: row.end_requested_at,
    endedAt: row.ended_at,
    revision: row.revision,
  };
}
