import { setTimeout as sleep } from 'node:timers/promises';

/** Minimum limit, ms: a machine under heavy load is slow, and a passing test never waits that long. */
const shortestMs = 300_000;

/** Limit of the wait, and details for its failure. */
export interface WaitOptions {
  /** A longer limit than `shortestMs`. */
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** Describes the actual state for the failure message. */
  readonly describe?: () => unknown;
}

/**
 * Polls until the answer is neither undefined nor false, and returns it. Only real time passes, so the limit is
 * generous.
 */
export async function waitFor<Value>(
  what: string,
  ask: () => Value | undefined | false | Promise<Value | undefined | false>,
  options: WaitOptions = {},
): Promise<Value> {
  const { everyMs = 50 } = options;
  const timeoutMs = Math.max(options.timeoutMs ?? 0, shortestMs);
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) {
      const instead = options.describe === undefined ? '' : `; instead: ${JSON.stringify(await options.describe(), null, 2)}`;
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}${instead}`);
    }
    await sleep(everyMs);
  }
}
