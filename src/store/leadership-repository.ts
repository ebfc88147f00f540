import type { Selectable } from 'kysely';
import type { LeaseView } from '../domain/leadership.ts';
import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';
import type { LeadershipTable } from './schema.ts';
import type { LeadershipRepository } from './store.ts';

const controllerLease = 'controller';

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
      // A single statement, so it does not wait for writers. Repeated after a lost response, it finds its own renewal
      // and reports a conflict. The caller then reads the lease.
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
      // In a write transaction: the former leader's last one is then complete, and its next one sees the new term.
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

/**
 * Fencing: a controller may write only while the database has no later term. A new leader raises the term in a
 * transaction of its own. The former leader's transactions commit before that or are refused, even if it was paused in
 * the middle.
 */
export class TermGuard {
  /** undefined: no check, because no other controller uses the database or this process does not lead yet. */
  #term: number | undefined;

  constructor(term: number | undefined) {
    this.#term = term;
  }

  guard(driver: Driver): Driver {
    return {
      ...driver,
      write: (work) =>
        driver.write(async (writer) => {
          if (this.#term !== undefined) refuseOlder(this.#term, await newestTerm(writer));
          return work(writer);
        }),
    };
  }

  /** Stores `term`: from now on every process's writes with a lower term are refused. This guard then uses `term`. */
  async raise(driver: Driver, term: number): Promise<void> {
    await driver.write(async (writer) => {
      refuseOlder(term, await newestTerm(writer));
      await writeTerm(writer, term);
    });
    this.#term = term;
  }
}

/** The newest term in the database; 0 before the first. */
async function newestTerm(writer: Writer): Promise<number> {
  const row = await writer.selectFrom('leadership').select('term').where('name', '=', controllerLease).executeTakeFirst();
  return row?.term ?? 0;
}

/** Stores the newest term. The lease of the current holder stays unchanged. */
async function writeTerm(writer: Writer, term: number): Promise<void> {
  await writer
    .insertInto('leadership')
    .values({ name: controllerLease, holder: null, term, renewal: 0, duration_ms: 0 })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ term }))
    .execute();
}

function refuseOlder(own: number, newest: number): void {
  if (newest > own) {
    throw new SvcError(
      'SVC_NOT_LEADER',
      `Another controller leads with term ${newest}; this one was of term ${own} and may not change anything any more.`,
    );
  }
}
