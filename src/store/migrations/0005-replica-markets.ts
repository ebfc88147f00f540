import type { Migration } from '../migrate.ts';

/** The market of a replica's machine, recorded with the intent: a restarted launch must not choose the other one. */
export const replicaMarkets: Migration = {
  version: 5,
  name: 'replica markets',
  async up(writer) {
    await writer.schema.alterTable('replicas').addColumn('market', 'text').execute();
  },
};
