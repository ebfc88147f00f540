import type { Insertable } from 'kysely';
import type { Change, ReplicaRecord } from '../domain/records.ts';
import type { Writer } from './driver.ts';
import { toJson } from './json-column.ts';
import type { ReplicaTable } from './schema.ts';

/** Adds a replica in a transaction. */
export async function insertReplica(writer: Writer, replica: ReplicaRecord): Promise<void> {
  await writer.insertInto('replicas').values(toRow(replica)).execute();
}

/** Compare-and-set in a transaction; undefined when the replica has changed or was removed since `seen` was read. */
export async function updateReplica(
  writer: Writer,
  seen: ReplicaRecord,
  change: Change<ReplicaRecord>,
): Promise<ReplicaRecord | undefined> {
  const changed = { ...seen, ...change, revision: seen.revision + 1 };
  // The key must match too: ids and revisions restart when a service of the same name is deployed again.
  const { numUpdatedRows } = await writer
    .updateTable('replicas')
    .set(toRow(changed))
    .where('service', '=', seen.service)
    .where('id', '=', seen.id)
    .where('key', '=', seen.key)
    .where('revision', '=', seen.revision)
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 0n ? undefined : changed;
}

function toRow(record: ReplicaRecord): Insertable<ReplicaTable> {
  return {
    service: record.service,
    id: record.id,
    version: record.version,
    state: record.state,
    market: record.market,
    key: record.key,
    place: toJson(record.offer),
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
