import type { Random } from './random.ts';

/** A retry delay that grows with each failure in a row. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Factor from one delay to the next; 2 when absent. */
  readonly factor?: number;
  /** The random share of each delay, 0 (default) to 1: clients that failed together must not retry together. */
  readonly jitter?: number;
}

/** Delay before the next attempt, after this many consecutive failures. Without `random`, its upper limit. */
export function delayMs({ firstMs, longestMs, factor = 2, jitter = 0 }: Backoff, failures: number, random?: Random): number {
  if (failures < 1) return 0;
  const wholeMs = Math.min(longestMs, firstMs * factor ** (failures - 1));
  return random === undefined ? wholeMs : wholeMs * (1 - jitter + jitter * random());
}

/** Before a dead process or thread is restarted. The first death has no delay: pass the number of deaths before it. */
export const restartBackoff: Backoff = { firstMs: 50, longestMs: 10_000 };
