import type { Migration } from '../migrate.ts';

const renamed: readonly (readonly [from: string, to: string])[] = [
  ['wanted', 'replica-requested'],
  ['place-gave', 'machine-created'],
  ['place-refused', 'launch-refused'],
  ['machine-heard', 'machine-responsive'],
  ['given-back', 'machine-released'],
];

/** Renames the causes of stored events to those that `explain` reads. */
export const eventCauses: Migration = {
  version: 4,
  name: 'event causes',
  async up(writer) {
    for (const [from, to] of renamed) await writer.updateTable('events').set({ cause: to }).where('cause', '=', from).execute();
  },
};
