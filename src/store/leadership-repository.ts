import type { Selectable } from 'kysely';
import type { LeaseView } from '../domain/leadership.ts';
import type { Driver } from './driver.ts';
import type { LeadershipTable } from './schema.ts';
import type { LeadershipRepository } from './store.ts';
import { controllerLease, newestTerm, writeTerm } from './term-guard.ts';

const nobody: LeaseView = { holder: null, term: 0, renewal: '0', durationMs: 0 };

/** The lease of all controllers of a database. `driver` is one without a guard: whoever asks for the lease does not lead yet. */
export function leadershipRepository(driver: Driver): LeadershipRepository {
  const { db } = driver;
  return {
    async read() {
      const row = await db.selectFrom('leadership').selectAll().where('name', '=', controllerLease).executeTakeFirst();
      return row === undefined ? nobody : toView(row);
    },

    async renew(seen, durationMs) {
      // By itself rather than in a transaction: it does not wait for writers then. One that is repeated because its answer was lost finds its own renewal, and is
      // told as one of somebody else; the lease is read then.
      const renewed = { ...seen, renewal: String(Number(seen.renewal) + 1), durationMs };
      const { numUpdatedRows } = await db
        .updateTable('leadership')
        .set({ renewal: Number(renewed.renewal), duration_ms: durationMs })
        .where('name', '=', controllerLease)
        .where('holder', '=', seen.holder)
        .where('term', '=', seen.term)
        .where('renewal', '=', Number(seen.renewal))
        .executeTakeFirstOrThrow();
      return numUpdatedRows === 0n ? undefined : renewed;
    },

    take: (seen, holder, durationMs) =>
      // As a writer: the last transaction of the former leader is complete, and its next one sees the new term.
      driver.write(async (writer) => {
        const row = await writer.selectFrom('leadership').selectAll().where('name', '=', controllerLease).executeTakeFirst();
        const now = row === undefined ? nobody : toView(row);
        if (now.renewal !== seen.renewal || now.term !== seen.term || now.holder !== seen.holder) return undefined;
        const taken = { holder, term: now.term + 1, renewal: Number(now.renewal) + 1, duration_ms: durationMs };
        await writer
          .insertInto('leadership')
          .values({ name: controllerLease, ...taken })
          .onConflict((conflict) => conflict.column('name').doUpdateSet(taken))
          .execute();
        return toView({ name: controllerLease, ...taken });
      }),

    claim: (from, term) =>
      driver.write(async (writer) => {
        if ((await newestTerm(writer)) !== from) return false;
        await writeTerm(writer, term);
        return true;
      }),
  };
}

function toView(row: Selectable<LeadershipTable>): LeaseView {
  return { holder: row.holder, term: row.term, renewal: String(row.renewal), durationMs: row.duration_ms };
}
