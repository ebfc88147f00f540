import type { BalancerReport } from '../../domain/balancer-link.ts';

type Stats = Extract<BalancerReport, { type: 'stats' }>;

const quietMs = 1_000;

/** Decides when the next report of counts is due: at once when anything changed, else each second. Pure; times are monotonic ms. */
export class StatsPacer {
  #lastText = '';
  #lastAt = Number.NEGATIVE_INFINITY;

  /** Whether to send `stats` now; true is taken as sent. */
  isDue(stats: Stats, now: number): boolean {
    const text = JSON.stringify({ ...stats, at: 0 });
    if (text === this.#lastText && now - this.#lastAt < quietMs) return false;
    this.#lastText = text;
    this.#lastAt = now;
    return true;
  }
}
