import type { Selectable } from 'kysely';
import type { LeaseView } from '../domain/leadership.ts';
import type { Driver } from './driver.ts';
import type { LeadershipTable } from './schema.ts';
import type { LeadershipRepository } from './store.ts';
import { controllerLease, newestTerm, writeTerm } from './term-guard.ts';

const unheldLease: LeaseView = { holder: null, term: 0, renewal: '0', durationMs: 0 };

/** The lease of all controllers of a database. `driver` has no term guard, because a candidate does not lead yet. */
export function leadershipRepository(driver: Driver): LeadershipRepository {
  const { db } = driver;
  return {
    async read() {
      const row = await db.selectFrom('leadership').selectAll().where('name', '=', controllerLease).executeTakeFirst();
      return row === undefined ? unheldLease : toView(row);
    },

    async renew(seen, durationMs) {
      // A single statement instead of a transaction, so it does not wait for writers. If it is repeated after a lost
      // response, it finds its own renewal and reports a conflict. The caller then reads the lease.
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
      // In a write transaction: the former leader's last transaction is then complete, and its next one sees the new
      // term.
      driver.write(async (writer) => {
        const row = await writer.selectFrom('leadership').selectAll().where('name', '=', controllerLease).executeTakeFirst();
        const now = row === undefined ? unheldLease : toView(row);
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
