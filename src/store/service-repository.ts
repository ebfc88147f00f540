import type { Insertable, Kysely, Selectable } from 'kysely';
import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';
import { insertEvent } from './event-repository.ts';
import { fromJson, fromJsonOrNull, taskFromJson, toJson, isServiceMemory } from './json-column.ts';
import { isProcessIdentity } from '../shared/system/process-identity.ts';
import { insertReplica, updateReplica } from './replica-rows.ts';
import type { Change, ReplicaRecord, ServiceRecord, VersionRecord } from '../domain/records.ts';
import type { Schema, ServiceTable, VersionTable } from './schema.ts';
import type { ServiceRepository } from './store.ts';

/** Rolls a transaction back after another process changed a record first. */
class Overtaken extends Error {}

/** The scope of a refusal by the whole provider, as earlier versions stored it and as it is called now. */
const [formerScope, currentScope] = ['"scope":"place"', '"scope":"provider"'];

/** Services and their versions in a database. */
export function serviceRepository(driver: Driver): ServiceRepository {
  const { db } = driver;
  return {
    async list() {
      const rows = await db.selectFrom('services').selectAll().orderBy('created_at').orderBy('name').execute();
      return rows.map(toRecord);
    },

    async get(name, key) {
      const row = await db.selectFrom('services').selectAll().where('name', '=', name).executeTakeFirst();
      return row === undefined || (key !== undefined && row.key !== key) ? undefined : toRecord(row);
    },

    add: (service, version, event, limit) =>
      driver.write(async (writer) => {
        await checkRoom(writer, service, limit);
        await writer.insertInto('services').values(toRow(service)).execute();
        await insertVersion(writer, version);
        await insertEvent(writer, event);
      }),

    update: (seen, change, event) =>
      driver.write(async (writer) => {
        const changed = await updateService(writer, seen, change);
        if (changed !== undefined && event !== undefined) await insertEvent(writer, event);
        return changed;
      }),

    async commit(seen, { change, events, changed, added }) {
      try {
        return await driver.write(async (writer) => {
          const nextReplicaId = Math.max(seen.nextReplicaId, ...added.map(({ replica }) => replica.id + 1));
          const service = await updateService(writer, seen, { ...change, nextReplicaId });
          if (service === undefined) throw new Overtaken();
          const replicas: ReplicaRecord[] = [];
          for (const one of changed) {
            const written = await updateReplica(writer, one.replica, one.change);
            if (written === undefined) throw new Overtaken();
            replicas.push(written);
            await insertEvent(writer, one.event);
          }
          for (const { replica, event } of added) {
            await insertReplica(writer, replica);
            replicas.push(replica);
            await insertEvent(writer, event);
          }
          for (const event of events) await insertEvent(writer, event);
          return { service, replicas };
        });
      } catch (error) {
        if (error instanceof Overtaken) return undefined;
        throw error;
      }
    },

    remove: (name, key, event) =>
      driver.write(async (writer) => {
        // The foreign keys cascade: versions and replicas are removed too.
        const { numDeletedRows } = await writer
          .deleteFrom('services')
          .where('name', '=', name)
          .where('key', '=', key)
          .executeTakeFirstOrThrow();
        if (numDeletedRows > 0n) await insertEvent(writer, event);
      }),

    version: (name, version) => findVersion(db, name, version),

    async versions(name) {
      const rows = await db.selectFrom('versions').selectAll().where('service', '=', name).orderBy('version').execute();
      return rows.map(toVersion);
    },

    addVersion: (seen, change, version, event) =>
      driver.write(async (writer) => {
        const service = await updateService(writer, seen, change);
        if (service === undefined) return undefined;
        await insertVersion(writer, version);
        await insertEvent(writer, event);
        return service;
      }),
  };
}

/** Compare-and-set; undefined if `seen` is outdated. An equal revision is an unchanged row: all of it is written. */
export async function updateService(
  writer: Writer,
  seen: ServiceRecord,
  change: Change<ServiceRecord>,
): Promise<ServiceRecord | undefined> {
  const changed = { ...seen, ...change, revision: seen.revision + 1 };
  const { numUpdatedRows } = await writer
    .updateTable('services')
    .set(toRow(changed))
    .where('name', '=', seen.name)
    .where('key', '=', seen.key)
    .where('revision', '=', seen.revision)
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 0n ? undefined : changed;
}

async function checkRoom(writer: Writer, service: ServiceRecord, limit: number): Promise<void> {
  const others = await writer.selectFrom('services').select(['name', 'port']).execute();
  if (others.some((other) => other.name === service.name)) {
    throw new SvcError('SVC_NAME_IN_USE', `A service named "${service.name}" exists already.`, {
      hint: `Choose another name with -n, or run: svc serve down ${service.name}`,
    });
  }
  if (others.length >= limit) {
    throw new SvcError('SVC_TOO_MANY_SERVICES', `The controller has ${others.length} services; its machine allows ${limit}.`);
  }
  const rival = others.find((other) => other.port === service.port);
  if (rival !== undefined) {
    throw new SvcError('SVC_PORT_BUSY', `Port ${service.port} belongs to the service "${rival.name}".`);
  }
}

function toRow(record: ServiceRecord): Insertable<ServiceTable> {
  return {
    name: record.name,
    key: record.key,
    state: record.state,
    desired: record.desired,
    purge: Number(record.purge),
    host: record.host,
    port: record.port,
    version: record.version,
    created_at: record.createdAt,
    first_ready_at: record.firstReadyAt,
    reason: record.reason,
    next_replica_id: record.nextReplicaId,
    memory: toJson(record.memory),
    reconciler: toJson(record.reconciler),
    balancer: toJson(record.balancer),
    processes_failed: Number(record.processesFailed),
    revision: record.revision,
  };
}

function toRecord(row: Selectable<ServiceTable>): ServiceRecord {
  return {
    name: row.name,
    key: row.key,
    state: row.state,
    desired: row.desired,
    purge: row.purge !== 0,
    host: row.host,
    port: row.port,
    version: row.version,
    createdAt: row.created_at,
    firstReadyAt: row.first_ready_at,
    reason: row.reason,
    nextReplicaId: row.next_replica_id,
    memory: fromJson(row.memory.replaceAll(formerScope, currentScope), 'services.memory', isServiceMemory),
    reconciler: fromJsonOrNull(row.reconciler, 'services.reconciler', isProcessIdentity),
    balancer: fromJsonOrNull(row.balancer, 'services.balancer', isProcessIdentity),
    processesFailed: row.processes_failed !== 0,
    revision: row.revision,
  };
}

async function findVersion(db: Kysely<Schema>, service: string, version: number): Promise<VersionRecord | undefined> {
  const row = await db.selectFrom('versions').selectAll().where('service', '=', service).where('version', '=', version).executeTakeFirst();
  return row === undefined ? undefined : toVersion(row);
}

function toVersion(row: Selectable<VersionTable>): VersionRecord {
  return {
    service: row.service,
    version: row.version,
    task: taskFromJson(row.task, 'versions.task'),
    source: row.source,
    createdAt: row.created_at,
  };
}

async function insertVersion(writer: Writer, version: VersionRecord): Promise<void> {
  await writer
    .insertInto('versions')
    .values({
      service: version.service,
      version: version.version,
      task: toJson(version.task),
      source: version.source,
      created_at: version.createdAt,
    })
    .execute();
}
