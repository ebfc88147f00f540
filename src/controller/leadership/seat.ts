import { rmSync } from 'node:fs';
import { hostOfHolder } from '../../domain/leadership.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError, toErrorReply } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { Candidacy } from './candidacy.ts';
import type { LeaseSource } from './lease-source.ts';
import { endLeftovers } from './leftovers.ts';

/** What a daemon with rivals needs besides what every daemon does. */
export interface SeatOptions {
  readonly source: LeaseSource;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly log: Logger;
  /** It led and does not any more: everything has to end at once. */
  readonly onLost: () => void;
}

/** The place of the leader among several daemons: a daemon waits for it, and leaves it in the end. */
export class Seat {
  readonly #options: SeatOptions;
  readonly #candidacy: Candidacy;
  readonly #failed = Promise.withResolvers<never>();
  #term: number | undefined;
  #other: string | undefined;

  constructor(options: SeatOptions) {
    this.#options = options;
    this.#failed.promise.catch(() => undefined);
    this.#candidacy = new Candidacy(options.source, options.paths.fence, options.clock, {
      otherLeads: (holder) => this.#standBy(holder),
      lost: (why) => this.#lose(why),
    });
  }

  /** The term with which it leads, once it does; undefined when the signal aborts before. */
  async taken(signal: AbortSignal): Promise<number | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const giveUp = (): void => resolve(undefined);
    signal.addEventListener('abort', giveUp, { once: true });
    if (signal.aborted) giveUp();
    this.#term = await Promise.race([this.#candidacy.elected, this.#failed.promise, promise]);
    signal.removeEventListener('abort', giveUp);
    if (this.#term === undefined) return undefined;
    this.#options.log.info({ term: this.#term }, 'this controller leads');
    rmSync(this.#options.paths.startError, { force: true });
    return this.#term;
  }

  /** From the call on nothing may be done any more; settles when another one can lead. */
  leave(): Promise<void> {
    return this.#candidacy.release();
  }

  /** Whoever starts a controller here and waits for it to answer reads who does. */
  #standBy(holder: string): void {
    if (this.#other === holder || this.#term !== undefined) return;
    this.#other = holder;
    const { log, paths, clock } = this.#options;
    log.info({ holder }, 'another controller leads; this one stands by');
    const message = `The controller here stands by: the one on ${hostOfHolder(holder)} leads.`;
    const error = new SvcError('SVC_NOT_LEADER', message, { hint: `Give the command on ${hostOfHolder(holder)}.` });
    writeFileAtomic(paths.startError, JSON.stringify(toErrorReply(error)));
    void endLeftovers(paths, clock).catch((failure: unknown) => log.warn({ err: failure }, 'what ran here before could not be ended'));
  }

  #lose(why: string): void {
    this.#options.log.error({ why }, 'the lease is lost');
    if (this.#term === undefined) this.#failed.reject(new SvcError('SVC_NOT_LEADER', `The lease cannot be asked for: ${why}`));
    else this.#options.onLost();
  }
}
