import type { Clock } from '../../shared/clock.ts';
import { DialError, type CancelDial, type DialDone } from '../../shared/system/dial.ts';

/** The code of a connect that was not begun. It proves nothing about the replica. */
export const notBegun = 'ENOTBEGUN';

/** The balancer's machine lacks files, ports or memory: this proves nothing about the replica. */
const ownShortages: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);

/** Whether the connect failed because the balancer's machine lacks a resource. */
export function isOwnShortage(error: DialError | undefined): boolean {
  return error !== undefined && ownShortages.has(error.code);
}

interface DialQueueOptions {
  readonly clock: Clock;
  /** Connects under way at once. */
  readonly most: number;
  /** How long a connect waits for others, ms. Its request then tries another replica, or the request queue. */
  readonly waitMs: number;
  readonly dial: (done: DialDone) => CancelDial;
}

interface Waiter {
  begin(): void;
  fail(): void;
}

/** Limits the connects to one replica; further ones wait in order. Those that may not begin fail with `notBegun`. */
export class DialQueue {
  readonly #options: DialQueueOptions;
  readonly #waiting = new Set<Waiter>();
  #underWay = 0;
  #connectedAt = Number.NEGATIVE_INFINITY;
  #willBegin = false;

  constructor(options: DialQueueOptions) {
    this.#options = options;
  }

  /** Calls `done` once and later, unless it is cancelled. */
  dial(done: DialDone): CancelDial {
    if (this.#underWay < this.#options.most) return this.#dial(done);
    let cancel: CancelDial = () => this.#waiting.delete(waiter);
    const waiter: Waiter = {
      begin: () => {
        stopTimer();
        cancel = this.#dial(done);
      },
      fail: () => {
        stopTimer();
        done(new DialError(notBegun, 'Too many connects to the replica are under way'), undefined);
      },
    };
    const stopTimer = this.#options.clock.after(this.#options.waitMs, () => {
      if (this.#waiting.delete(waiter)) waiter.fail();
    });
    this.#waiting.add(waiter);
    return () => {
      stopTimer();
      cancel();
    };
  }

  /** Fails those that wait, soon: the replica gets no more requests. */
  refuseWaiting(): void {
    if (this.#waiting.size > 0) this.#options.clock.after(0, () => this.#failWaiting());
  }

  #dial(done: DialDone): CancelDial {
    const { clock } = this.#options;
    const begunAt = clock.monotonic();
    let isUnderWay = true;
    this.#underWay += 1;
    const cancel = this.#options.dial((error, socket) => {
      isUnderWay = false;
      this.#underWay -= 1;
      if (socket !== undefined) this.#connectedAt = clock.monotonic();
      done(error, socket);
      // Nothing connected meanwhile: the others would fail as well, each after its own time limit.
      if (error !== undefined && !isOwnShortage(error) && this.#connectedAt < begunAt) this.#failWaiting();
      else this.#beginNext();
    });
    return () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      this.#underWay -= 1;
      cancel();
      this.#beginSoon();
    };
  }

  /** Not at once: when many clients leave together, the next one may leave as well. */
  #beginSoon(): void {
    if (this.#willBegin || this.#waiting.size === 0) return;
    this.#willBegin = true;
    this.#options.clock.after(0, () => {
      this.#willBegin = false;
      this.#beginNext();
    });
  }

  #beginNext(): void {
    for (const waiter of this.#waiting) {
      if (this.#underWay >= this.#options.most) return;
      this.#waiting.delete(waiter);
      waiter.begin();
    }
  }

  #failWaiting(): void {
    const waiting = [...this.#waiting];
    for (const waiter of waiting) if (this.#waiting.delete(waiter)) waiter.fail();
  }
}
