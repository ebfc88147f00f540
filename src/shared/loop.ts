import type { Clock } from './clock.ts';
import { ended, linkedController } from './deadline.ts';

/** A control loop: one pass at a time, without end. */
export interface Loop {
  readonly name: string;
  readonly everyMs: number;
  /** One pass: load, decide, apply. It must be safe to repeat after a crash at any line. */
  tick(signal: AbortSignal): Promise<void>;
}

type LoopDeps = { readonly clock: Clock; readonly onError: (loop: string, error: unknown) => void };

/** A running loop. Callers can request its next pass at once. */
export interface RunningLoop {
  /** Starts the next pass now. During a pass it schedules one more. */
  wake(): void;
  /** Settles when the loop has ended after its signal aborted. */
  readonly ended: Promise<void>;
}

/** Runs passes one after another until aborted. After a failed pass, `onError` is called and the loop continues. */
export function startLoop(loop: Loop, deps: LoopDeps, signal: AbortSignal): RunningLoop {
  let nap: AbortController | undefined;
  let woken = false;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      woken = false;
      const startedAt = deps.clock.monotonic();
      try {
        await loop.tick(signal);
      } catch (error) {
        if (!signal.aborted) deps.onError(loop.name, error);
      }
      if (woken) {
        // Lets timers and sockets run even when each pass requests the next one.
        await deps.clock.sleep(0);
        continue;
      }
      const { controller, unlink } = linkedController(signal);
      nap = controller;
      await deps.clock.sleep(Math.max(0, startedAt + loop.everyMs - deps.clock.monotonic()), nap.signal);
      unlink();
    }
  };
  return {
    wake() {
      woken = true;
      nap?.abort(ended);
    },
    ended: run(),
  };
}

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
  let nap: AbortController | undefined;
  return {
    wake() {
      isWoken = true;
      nap?.abort(ended);
    },
    async pause(ms) {
      if (!isWoken) {
        const { controller, unlink } = linkedController(signal);
        nap = controller;
        await clock.sleep(ms, nap.signal);
        unlink();
      }
      isWoken = false;
    },
  };
}
