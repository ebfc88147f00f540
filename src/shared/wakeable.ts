import type { Clock } from './clock.ts';

/** A pause that can be cut short. */
export interface Wakeable {
  /** Ends the pause that is being made; without one, the next is none. */
  readonly wake: () => void;
  /** Settles after so long, ms, when it is woken, or when the signal aborts. */
  pause(ms: number): Promise<void>;
}

/** For loops that look now and then, and at once when they are told of a change: one that happens while they look is not missed. */
export function wakeable(clock: Clock, signal: AbortSignal): Wakeable {
  let isWoken = false;
  let nap = new AbortController();
  return {
    wake() {
      isWoken = true;
      nap.abort();
    },
    async pause(ms) {
      nap = new AbortController();
      if (!isWoken) await clock.sleep(ms, AbortSignal.any([signal, nap.signal]));
      isWoken = false;
    },
  };
}
