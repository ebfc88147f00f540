import { sql } from 'kysely';
import type { Migration } from '../migrate.ts';

/** Tells a database from its older copies; see `database-file.ts`. A file's write transactions increment `changes`. */
export const databaseIdentity: Migration = {
  version: 3,
  name: 'database identity',
  async up(writer, driver) {
    await writer.schema
      .createTable('database_identity')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('id', 'text', (column) => column.notNull())
      .addColumn('changes', sql.raw(driver.counterType), (column) => column.notNull())
      .addColumn('restored_at', 'bigint')
      .execute();
  },
};
