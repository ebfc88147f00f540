import type { Migration } from '../migrate.ts';

/** What is known of spot zones: shared by all services, so it does not belong to one of them. */
export const zoneHistories: Migration = {
  version: 6,
  name: 'zone histories',
  async up(writer) {
    await writer.schema
      .createTable('zone_histories')
      .addColumn('zone', 'text', (column) => column.primaryKey())
      .addColumn('history', 'text', (column) => column.notNull())
      .execute();
  },
};
