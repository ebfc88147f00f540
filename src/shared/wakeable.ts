import type { Clock } from './clock.ts';

/** A pause that can be interrupted. */
export interface Wakeable {
  /** Ends the current pause. If there is none, the next pause ends at once. */
  readonly wake: () => void;
  /** Settles after `ms`, when woken, or when the signal aborts. */
  pause(ms: number): Promise<void>;
}

/** For loops that poll, and run at once when notified of a change. A change during a pass is not missed. */
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
