import type { Insertable, Selectable } from 'kysely';
import { SvcError } from '../shared/errors.ts';
import type { Driver } from './driver.ts';
import { taskFromJson, toJson } from './json-column.ts';
import type { JobRecord } from '../domain/records.ts';
import type { JobTable } from './schema.ts';
import type { ClusterRepository } from './store.ts';

/** Jobs of all clusters in a database: the part of the cluster repository for jobs. */
export function jobRepository(driver: Driver): Pick<ClusterRepository, 'jobs' | 'addJob' | 'updateJob'> {
  const { db } = driver;
  return {
    async jobs(cluster) {
      const rows = await db.selectFrom('jobs').selectAll().where('cluster', '=', cluster).orderBy('id').execute();
      return rows.map(toRecord);
    },

    addJob: (job) =>
      driver.write(async (writer) => {
        const cluster = await writer.selectFrom('clusters').select('name').where('name', '=', job.cluster).executeTakeFirst();
        if (cluster === undefined) throw new SvcError('SVC_CLUSTER_NOT_FOUND', `There is no cluster named "${job.cluster}".`);
        const { newest } = await writer
          .selectFrom('jobs')
          .select((select) => select.fn.max('id').as('newest'))
          .where('cluster', '=', job.cluster)
          .executeTakeFirstOrThrow();
        const added = { ...job, id: (newest ?? 0) + 1, revision: 1 };
        await writer.insertInto('jobs').values(toRow(added)).execute();
        return added;
      }),

    updateJob: (seen, change) =>
      driver.write(async (writer) => {
        const changed = { ...seen, ...change, revision: seen.revision + 1 };
        // The creation time must match too: ids and revisions restart with a new cluster of the same name.
        const { numUpdatedRows } = await writer
          .updateTable('jobs')
          .set(toRow(changed))
          .where('cluster', '=', seen.cluster)
          .where('id', '=', seen.id)
          .where('created_at', '=', seen.createdAt)
          .where('revision', '=', seen.revision)
          .executeTakeFirstOrThrow();
        return numUpdatedRows === 0n ? undefined : changed;
      }),
  };
}

function toRow(record: JobRecord): Insertable<JobTable> {
  return {
    cluster: record.cluster,
    id: record.id,
    state: record.state,
    task: toJson(record.task),
    created_at: record.createdAt,
    started_at: record.startedAt,
    ended_at: record.endedAt,
    exit_code: record.exitCode,
    revision: record.revision,
  };
}

function toRecord(row: Selectable<JobTable>): JobRecord {
  return {
    cluster: row.cluster,
    id: row.id,
    state: row.state,
    task: taskFromJson(row.task, 'jobs.task'),
    createdAt: row.created_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    exitCode: row.exit_code,
    revision: row.revision,
  };
}
