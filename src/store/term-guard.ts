import { SvcError } from '../shared/errors.ts';
import type { Driver, Writer } from './driver.ts';

/** The one row of the table `leadership`. */
export const controllerLease = 'controller';

/**
 * Lets a controller write only as long as none of a later term is known to the database. Whoever takes over raises the term in a writing transaction of its own, so each of the
 * former leader's is either complete before or refused: also of one that was paused in the middle.
 */
export class TermGuard {
  /** undefined: this process has no rivals, or does not lead yet. */
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

  /** From now on all that is of a lower term is refused, whoever writes it; and what is written here is of this one. */
  async raise(driver: Driver, term: number): Promise<void> {
    await driver.write(async (writer) => {
      refuseOlder(term, await newestTerm(writer));
      await writeTerm(writer, term);
    });
    this.#term = term;
  }
}

/** The newest term that is known to the database; 0 before the first. */
export async function newestTerm(writer: Writer): Promise<number> {
  const row = await writer.selectFrom('leadership').select('term').where('name', '=', controllerLease).executeTakeFirst();
  return row?.term ?? 0;
}

/** Makes a term the newest one. */
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
