import type { Kysely } from 'kysely';
import type { Writer } from './driver.ts';
import { fromJson, toJson } from './json-column.ts';
import { isTask } from './json-guards.ts';
import type { VersionRecord } from './records.ts';
import type { Schema } from './schema.ts';

/** One version of a service. */
export async function findVersion(db: Kysely<Schema>, service: string, version: number): Promise<VersionRecord | undefined> {
  const row = await db.selectFrom('versions').selectAll().where('service', '=', service).where('version', '=', version).executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    service: row.service,
    version: row.version,
    task: fromJson(row.task, 'versions.task', isTask),
    source: row.source,
    createdAt: row.created_at,
  };
}

/** Adds a version to a transaction. */
export async function insertVersion(writer: Writer, version: VersionRecord): Promise<void> {
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
