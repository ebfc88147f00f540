import type { Insertable, Selectable } from 'kysely';
import { isEnded, replicaStates } from '../domain/replica-state.ts';
import type { Driver } from './driver.ts';
import { insertEvent } from './event-repository.ts';
import { fromJsonOrNull, toJson } from './json-column.ts';
import { isPlace, isReplicaAddress } from './json-guards.ts';
import type { ReplicaRecord } from './records.ts';
import type { ReplicaTable } from './schema.ts';
import { updateService } from './service-repository.ts';
import type { ReplicaRepository } from './store.ts';

const endedStates = replicaStates.filter(isEnded);

/** Replicas of all services, over a database. */
export function replicaRepository(driver: Driver): ReplicaRepository {
  const { db } = driver;
  return {
    async list(service) {
      const rows = await db.selectFrom('replicas').selectAll().where('service', '=', service).orderBy('id').execute();
      return rows.map(toRecord);
    },

    async add(seen, replica, event) {
      // An id that was used before would let a record that is long gone speak for the new replica.
      if (replica.id < seen.nextReplicaId)
        throw new Error(`replica id ${replica.id} of "${seen.name}" has been used; the next is ${seen.nextReplicaId}`);
      return driver.write(async (writer) => {
        const changed = await updateService(writer, seen, { nextReplicaId: replica.id + 1 });
        if (changed === undefined) return undefined;
        await writer.insertInto('replicas').values(toRow(replica)).execute();
        await insertEvent(writer, event);
        return changed;
      });
    },

    update: (seen, change, event) =>
      driver.write(async (writer) => {
        const changed = { ...seen, ...change, revision: seen.revision + 1 };
        // The key too: ids and revisions start anew when a service of the same name is put up again.
        const { numUpdatedRows } = await writer
          .updateTable('replicas')
          .set(toRow(changed))
          .where('service', '=', seen.service)
          .where('id', '=', seen.id)
          .where('key', '=', seen.key)
          .where('revision', '=', seen.revision)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) return undefined;
        if (event !== undefined) await insertEvent(writer, event);
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

function toRow(record: ReplicaRecord): Insertable<ReplicaTable> {
  return {
    service: record.service,
    id: record.id,
    version: record.version,
    state: record.state,
    key: record.key,
    place: toJson(record.place),
    machine_id: record.machineId,
    address: toJson(record.address),
    created_at: record.createdAt,
    launched_at: record.launchedAt,
    started_at: record.startedAt,
    first_ready_at: record.firstReadyAt,
    ready_since: record.readySince,
    first_probe_failure_at: record.firstProbeFailureAt,
    end_cause: record.endCause,
    reason: record.reason,
    end_requested_at: record.endRequestedAt,
    ended_at: record.endedAt,
    revision: record.revision,
  };
}

function toRecord(row: Selectable<ReplicaTable>): ReplicaRecord {
  return {
    service: row.service,
    id: row.id,
    version: row.version,
    state: row.state,
    key: row.key,
    place: fromJsonOrNull(row.place, 'replicas.place', isPlace),
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
