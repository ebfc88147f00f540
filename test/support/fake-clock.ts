import { setTimeout as realPause } from 'node:timers/promises';
import type { CancelTimer, Clock } from '../../src/shared/clock.ts';

interface Timer {
  /** Monotonic ms at which it fires. */
  dueAt: number;
  /** Order of creation: decides between timers due at the same time, as in Node. */
  readonly order: number;
  /** Ms between firings; undefined for a timer that fires once. */
  readonly everyMs: number | undefined;
  readonly fire: () => void;
}

/** Turns of the event loop between two timers: enough for promise chains and in-memory streams. One, for promises alone. */
const usualTurns = 2;

/** Plain, because `timers/promises` costs three times as much. */
const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Rounds that wait for real files without a pause: enough on an idle machine. */
const quickRounds = 100;

/** Tests use real files. On a busy machine an operation can take long, so each further round pauses for a real ms. */
const mostRounds = 60_000;

/** Closing a file handle uses a different kind of request. */
const isFileWorkUnderWay = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq') || name === 'CloseReq');

/**
 * Time that moves only when a test advances it: an hour takes a millisecond, and every run is the same. Wall and
 * monotonic time start at different values, so that code which mixes them up fails at once.
 */
export class FakeClock implements Clock {
  readonly #timers = new Set<Timer>();
  #monotonic = 1_000;
  #wallOffset: number;
  #order = 0;

  readonly #turns: number;

  /** `startAt` is the wall time in ms since the epoch; by default noon of 2030-01-01 UTC. `turns`: see `usualTurns`. */
  constructor(startAt = Date.UTC(2030, 0, 1, 12), turns = usualTurns) {
    this.#turns = turns;
    this.#wallOffset = startAt - this.#monotonic;
  }

  now(): number {
    return this.#monotonic + this.#wallOffset;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.after(ms, () => {
        signal?.removeEventListener('abort', wakeEarly);
        resolve();
      });
      function wakeEarly(): void {
        cancel();
        resolve();
      }
      signal?.addEventListener('abort', wakeEarly, { once: true });
    });
  }

  after(ms: number, fire: () => void): CancelTimer {
    return this.#add(ms, undefined, fire);
  }

  every(ms: number, fire: () => void): CancelTimer {
    // A period of zero would never let time move on; Node makes it 1 ms too.
    const period = Math.max(1, ms);
    return this.#add(period, period, fire);
  }

  /** Pending timers: zero once everything under test has been stopped. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Lets work in progress run as far as possible without time passing. */
  async settle(): Promise<void> {
    for (let round = 0; round < mostRounds; round += 1) {
      for (let turn = 0; turn < this.#turns; turn += 1) await nextTurn();
      if (!isFileWorkUnderWay()) return;
      if (round >= quickRounds) await realPause(1);
    }
  }

  /** Advances time by `ms`: fires due timers in order, and runs the work that each one starts before the next. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    const target = this.#monotonic + ms;
    for (let timer = this.#nextDue(target); timer !== undefined; timer = this.#nextDue(target)) {
      this.#monotonic = Math.max(this.#monotonic, timer.dueAt);
      if (timer.everyMs === undefined) this.#timers.delete(timer);
      else timer.dueAt += timer.everyMs;
      timer.fire();
      await this.settle();
    }
    this.#monotonic = target;
    await this.settle();
  }

  /** Advances time in steps of `stepMs` until `condition` holds; returns the elapsed ms. Throws after `limitMs`. */
  async advanceUntil(condition: () => boolean, limitMs = 3_600_000, stepMs = 100): Promise<number> {
    const startedAt = this.#monotonic;
    await this.settle();
    while (!condition()) {
      if (this.#monotonic - startedAt >= limitMs) throw new Error(`still not so after ${limitMs} ms of virtual time`);
      await this.advance(stepMs);
    }
    return this.#monotonic - startedAt;
  }

  /** Changes the wall time alone, as an administrator or NTP does. */
  jumpWallTime(byMs: number): void {
    this.#wallOffset += byMs;
  }

  #add(ms: number, everyMs: number | undefined, fire: () => void): CancelTimer {
    this.#order += 1;
    const timer: Timer = { dueAt: this.#monotonic + Math.max(0, ms), order: this.#order, everyMs, fire };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  #nextDue(target: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueAt > target) continue;
      if (next === undefined || timer.dueAt < next.dueAt || (timer.dueAt === next.dueAt && timer.order < next.order)) next = timer;
    }
    return next;
  }
}
