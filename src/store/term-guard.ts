import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';

/** Name of the only row of the table `leadership`. */
export const controllerLease = 'controller';

/**
 * Fencing: a controller may write only while the database has no later term.
 *
 * A new leader raises the term in a write transaction of its own. A transaction of the former leader either commits
 * before that or is refused. This holds even if the former leader was paused in the middle.
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
export async function newestTerm(writer: Writer): Promise<number> {
  const row = await writer.selectFrom('leadership').select('term').where('name', '=', controllerLease).executeTakeFirst();
  return row?.term ?? 0;
}

/** Stores the newest term. The lease of the current holder stays unchanged. */
export async function writeTerm(writer: Writer, term: number): Promise<void> {
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
