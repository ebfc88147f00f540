import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';

/** What a step has to ask about the database that it changes. */
export type ColumnTypes = Pick<Driver, 'selfCounting' | 'counterType' | 'binaryType'>;

/** One step of the schema, never changed once released. Forward only: there is no way down. */
export interface Migration {
  /** Counts from 1 without gaps. */
  readonly version: number;
  readonly name: string;
  /**
   * Runs inside the transaction that also records it. Only adds: processes of the version before may be using the database. Of the writer only
   * `schema` and raw SQL: its types are those of the newest schema, not of the one that this step finds.
   */
  up(writer: Writer, driver: ColumnTypes): Promise<void>;
}

/**
 * Brings the schema to the newest of `migrations`. Any number of processes may do so at once: the first does the work, and the others find it
 * done. Throws SVC_VERSION_MISMATCH when the database has seen a newer version of svc.
 */
export async function migrate(driver: Driver, migrations: readonly Migration[], clock: Clock): Promise<void> {
  await driver.write(async (writer) => {
    await writer.schema
      .createTable('migrations')
      .ifNotExists()
      .addColumn('version', 'integer', (column) => column.primaryKey())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('applied_at', 'bigint', (column) => column.notNull())
      .execute();
    const newest = await writer.selectFrom('migrations').select('version').orderBy('version', 'desc').limit(1).executeTakeFirst();
    const current = newest?.version ?? 0;
    if (current > migrations.length) {
      throw new SvcError(
        'SVC_VERSION_MISMATCH',
        `The state database has schema ${current}; this version of svc knows schemas up to ${migrations.length}.`,
        {
          hint: 'Use the newer version of svc that wrote it, or another SVC_HOME.',
        },
      );
    }
    for (const migration of migrations.slice(current)) {
      await migration.up(writer, driver);
      await writer.insertInto('migrations').values({ version: migration.version, name: migration.name, applied_at: clock.now() }).execute();
    }
  });
}
