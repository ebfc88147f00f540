import type { Insertable, Selectable } from 'kysely';
import { SvcError } from '../shared/errors.ts';
import type { Driver } from './driver.ts';
import { insertEvent } from './event-repository.ts';
import { jobRepository } from './job-repository.ts';
import { fromJsonOrNull, toJson, isOfferRecord } from './json-column.ts';
import type { ClusterRecord } from '../domain/records.ts';
import type { ClusterTable } from './schema.ts';
import type { ClusterRepository } from './store.ts';

/** Clusters and their jobs in a database. */
export function clusterRepository(driver: Driver): ClusterRepository {
  const { db } = driver;
  return {
    async list() {
      const rows = await db.selectFrom('clusters').selectAll().orderBy('created_at').orderBy('name').execute();
      return rows.map(toRecord);
    },

    async get(name) {
      const row = await db.selectFrom('clusters').selectAll().where('name', '=', name).executeTakeFirst();
      return row === undefined ? undefined : toRecord(row);
    },

    add: (cluster, event) =>
      driver.write(async (writer) => {
        const rival = await writer.selectFrom('clusters').select('name').where('name', '=', cluster.name).executeTakeFirst();
        if (rival !== undefined) {
          throw new SvcError('SVC_NAME_IN_USE', `A cluster named "${cluster.name}" exists already.`, {
            hint: `Choose another name with -c, or run: svc down ${cluster.name}`,
          });
        }
        await writer.insertInto('clusters').values(toRow(cluster)).execute();
        await insertEvent(writer, event);
      }),

    update: (seen, change, event) =>
      driver.write(async (writer) => {
        const changed = { ...seen, ...change, revision: seen.revision + 1 };
        const { numUpdatedRows } = await writer
          .updateTable('clusters')
          .set(toRow(changed))
          .where('name', '=', seen.name)
          .where('key', '=', seen.key)
          .where('revision', '=', seen.revision)
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) return undefined;
        if (event !== undefined) await insertEvent(writer, event);
        return changed;
      }),

    remove: (name, key, event) =>
      driver.write(async (writer) => {
        // The foreign key cascades: its jobs are removed too.
        const { numDeletedRows } = await writer
          .deleteFrom('clusters')
          .where('name', '=', name)
          .where('key', '=', key)
          .executeTakeFirstOrThrow();
        if (numDeletedRows > 0n) await insertEvent(writer, event);
      }),

    ...jobRepository(driver),
  };
}

function toRow(record: ClusterRecord): Insertable<ClusterTable> {
  return {
    name: record.name,
    key: record.key,
    state: record.state,
    machine_key: record.machineKey,
    machine_id: record.machineId,
    place: toJson(record.offer),
    created_at: record.createdAt,
    reason: record.reason,
    revision: record.revision,
  };
}

function toRecord(row: Selectable<ClusterTable>): ClusterRecord {
  return {
    name: row.name,
    key: row.key,
    state: row.state,
    machineKey: row.machine_key,
    machineId: row.machine_id,
    offer: fromJsonOrNull(row.place, 'clusters.place', isOfferRecord),
    createdAt: row.created_at,
    reason: row.reason,
    revision: row.revision,
  };
}
