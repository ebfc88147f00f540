import type { Migration } from '../migrate.ts';

/** The first schema. A port is unique over all services, and ids of events are never reused. */
export const initial: Migration = {
  version: 1,
  name: 'initial',
  async up(writer, driver) {
    await writer.schema
      .createTable('services')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('desired', 'text', (column) => column.notNull())
      .addColumn('purge', 'integer', (column) => column.notNull())
      .addColumn('host', 'text', (column) => column.notNull())
      .addColumn('port', 'integer', (column) => column.notNull().unique())
      .addColumn('version', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('first_ready_at', 'bigint')
      .addColumn('reason', 'text')
      .addColumn('next_replica_id', 'integer', (column) => column.notNull())
      .addColumn('memory', 'text', (column) => column.notNull())
      .addColumn('reconciler', 'text')
      .addColumn('balancer', 'text')
      .addColumn('processes_failed', 'integer', (column) => column.notNull())
      .addColumn('revision', 'integer', (column) => column.notNull())
      .execute();

    await writer.schema
      .createTable('versions')
      .addColumn('service', 'text', (column) => column.notNull().references('services.name').onDelete('cascade'))
      .addColumn('version', 'integer', (column) => column.notNull())
      .addColumn('task', 'text', (column) => column.notNull())
      .addColumn('source', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('versions_key', ['service', 'version'])
      .execute();

    await writer.schema
      .createTable('replicas')
      .addColumn('service', 'text', (column) => column.notNull().references('services.name').onDelete('cascade'))
      .addColumn('id', 'integer', (column) => column.notNull())
      .addColumn('version', 'integer', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('place', 'text')
      .addColumn('machine_id', 'text')
      .addColumn('address', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('launched_at', 'bigint')
      .addColumn('started_at', 'bigint')
      .addColumn('first_ready_at', 'bigint')
      .addColumn('ready_since', 'bigint')
      .addColumn('first_probe_failure_at', 'bigint')
      .addColumn('end_cause', 'text')
      .addColumn('reason', 'text')
      .addColumn('end_requested_at', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('revision', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('replicas_key', ['service', 'id'])
      .execute();

    await writer.schema
      .createTable('events')
      .addColumn('id', driver.counterType, (column) => driver.selfCounting(column))
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('subject', 'text', (column) => column.notNull())
      .addColumn('subject_key', 'text', (column) => column.notNull())
      .addColumn('replica_id', 'integer')
      .addColumn('from_state', 'text')
      .addColumn('to_state', 'text')
      .addColumn('cause', 'text', (column) => column.notNull())
      .addColumn('message', 'text', (column) => column.notNull())
      .execute();
    // The first index finds the newest subject of a name, the second pages through one subject.
    await writer.schema.createIndex('events_by_subject').on('events').columns(['subject', 'id']).execute();
    await writer.schema.createIndex('events_by_subject_key').on('events').columns(['subject', 'subject_key', 'id']).execute();

    await writer.schema
      .createTable('clusters')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('machine_key', 'text', (column) => column.notNull())
      .addColumn('machine_id', 'text')
      .addColumn('place', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('revision', 'integer', (column) => column.notNull())
      .execute();

    await writer.schema
      .createTable('jobs')
      .addColumn('cluster', 'text', (column) => column.notNull().references('clusters.name').onDelete('cascade'))
      .addColumn('id', 'integer', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('task', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('started_at', 'bigint')
      .addColumn('ended_at', 'bigint')
      .addColumn('exit_code', 'integer')
      .addColumn('revision', 'integer', (column) => column.notNull())
      .addPrimaryKeyConstraint('jobs_key', ['cluster', 'id'])
      .execute();
  },
};
