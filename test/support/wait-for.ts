import { setTimeout as sleep } from 'node:timers/promises';

/** How long to wait, and what to say when it was in vain. */
export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** Called for the message of the failure: what there was instead. */
  readonly describe?: () => unknown;
}

/** Asks until the answer is neither undefined nor false, and gives it back. Only real time passes, so the limit is generous. */
export async function waitFor<Value>(
  what: string,
  ask: () => Value | undefined | false | Promise<Value | undefined | false>,
  options: WaitOptions = {},
): Promise<Value> {
  const { timeoutMs = 30_000, everyMs = 50 } = options;
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
