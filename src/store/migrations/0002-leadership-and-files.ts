import { sql } from 'kysely';
import type { Migration } from '../migrate.ts';

/** The lease of several controllers, and files for the next leader. Used only when controllers share a database. */
export const leadershipAndFiles: Migration = {
  version: 2,
  name: 'leadership and files',
  async up(writer, driver) {
    await writer.schema
      .createTable('leadership')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('holder', 'text')
      .addColumn('term', 'integer', (column) => column.notNull())
      .addColumn('renewal', 'bigint', (column) => column.notNull())
      .addColumn('duration_ms', 'integer', (column) => column.notNull())
      .execute();

    // No foreign key to an owner's table: files are saved before the record that needs them.
    await writer.schema
      .createTable('file_trees')
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('manifest', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('file_trees_key', ['owner', 'name'])
      .execute();
    await writer.schema
      .createTable('file_blocks')
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('sha256', 'text', (column) => column.notNull())
      .addColumn('content', sql.raw(driver.binaryType), (column) => column.notNull())
      .addPrimaryKeyConstraint('file_blocks_key', ['owner', 'sha256'])
      .execute();
  },
};
