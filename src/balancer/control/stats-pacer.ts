import type { BalancerReport } from '../../domain/balancer-link.ts';

type Stats = Extract<BalancerReport, { type: 'stats' }>;

const quietMs = 1_000;

/** Paces the balancer's counts: at once after a change, otherwise every `quietMs`. Pure. Times are monotonic ms. */
export class StatsPacer {
  #lastText = '';
  #lastAt = Number.NEGATIVE_INFINITY;

  /** Whether to send `stats` now. After true, the caller must send them. */
  isDue(stats: Stats, now: number): boolean {
    const text = JSON.stringify({ ...stats, at: 0 });
    if (text === this.#lastText && now - this.#lastAt < quietMs) return false;
    this.#lastText = text;
    this.#lastAt = now;
    return true;
  }
}
