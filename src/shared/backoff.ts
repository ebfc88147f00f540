import type { Random } from './random.ts';

/** A retry delay that grows with each failure in a row. */
export interface Backoff {
  /** Delay after the first failure. */
  readonly firstMs: number;
  /** Upper limit of the delay. */
  readonly longestMs: number;
  /** Factor from one delay to the next; 2 when absent. */
  readonly factor?: number;
  /**
   * The random share of each delay, 0 to 1, so that clients that failed together do not retry together. With 0.5, a
   * delay is between half and all of its length. 0 when absent.
   */
  readonly jitter?: number;
}

/**
 * Delay before the next attempt, after this many consecutive failures. Without `random`, the upper limit of the delay.
 */
export function delayMs({ firstMs, longestMs, factor = 2, jitter = 0 }: Backoff, failures: number, random?: Random): number {
  if (failures < 1) return 0;
  const wholeMs = Math.min(longestMs, firstMs * factor ** (failures - 1));
  return random === undefined ? wholeMs : wholeMs * (1 - jitter + jitter * random());
}

/**
 * Backoff before a dead process or thread is restarted. The first death in a while has no delay: pass the number of
 * deaths before it.
 */
export const restartBackoff: Backoff = { firstMs: 50, longestMs: 10_000 };
