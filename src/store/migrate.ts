import type { Clock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';

type ColumnTypes = Pick<Driver, 'selfCounting' | 'counterType' | 'binaryType'>;

/** One step of the schema, never changed once released. There are no downgrades. */
export interface Migration {
  /** From 1 without gaps. */
  readonly version: number;
  readonly name: string;
  /**
   * Runs in the transaction that records the step. It must not remove or retype what processes of the previous version
   * read: they may use the database. The writer's types are the newest schema's. So a step uses `schema`, raw SQL, and
   * columns that existed before it.
   */
  up(writer: Writer, driver: ColumnTypes): Promise<void>;
}

/**
 * Brings the schema to the newest of `migrations`. Of several processes that call it at once, one does the work. Throws
 * SVC_VERSION_MISMATCH when a newer version of svc has used the database.
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
