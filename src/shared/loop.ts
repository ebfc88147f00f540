import type { Clock } from './clock.ts';

/** A control loop: one pass at a time, for ever. */
export interface Loop {
  readonly name: string;
  readonly everyMs: number;
  /** One pass: load, decide, apply. Must be safe to repeat after a crash at any line. */
  tick(signal: AbortSignal): Promise<void>;
}

/** What a loop needs from outside. */
export type LoopDeps = { readonly clock: Clock; readonly onError: (loop: string, error: unknown) => void };

/** A running loop that can be asked to make its next pass at once. */
export interface RunningLoop {
  /** Makes the next pass now; during a pass, one more follows it. */
  wake(): void;
  /** Settles when the loop ended after its signal aborted. */
  readonly ended: Promise<void>;
}

/** Runs passes one after another until aborted. A failed pass goes to `onError` and the next one still comes. */
export function startLoop(loop: Loop, deps: LoopDeps, signal: AbortSignal): RunningLoop {
  let nap = new AbortController();
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
        // Timers and sockets get their turn even when each pass asks for the next one.
        await deps.clock.sleep(0);
        continue;
      }
      nap = new AbortController();
      await deps.clock.sleep(Math.max(0, startedAt + loop.everyMs - deps.clock.monotonic()), AbortSignal.any([signal, nap.signal]));
    }
  };
  return {
    wake() {
      woken = true;
      nap.abort();
    },
    ended: run(),
  };
}
