import { type RequestWindow, addArrivals, rateWindowMs, countArrivals } from '../../domain/autoscale.ts';
import type { LoadReport } from '../../domain/reconcile.ts';
import type { Clock } from '../../shared/clock.ts';
import type { BalancerView } from './balancer-client.ts';

/** Counts the requests of a service and decides when an autoscaling decision is due. */
export class LoadMeter {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #window: RequestWindow = [];
  #nextDecisionAt = Number.NEGATIVE_INFINITY;
  /** Whether a decision was requested since the last report. */
  #isAsked = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** Adds requests that reached the balancer. */
  arrivals(count: number): void {
    this.#window = addArrivals(this.#window, this.#clock.monotonic(), count);
  }

  /** Makes a decision due. */
  decideNow(): void {
    this.#isAsked = true;
    this.#nextDecisionAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * Call after a decision on the last report was committed. The next one is due after `nextMs`, unless one was
   * requested meanwhile.
   */
  decided(nextMs: number): void {
    if (!this.#isAsked) this.#nextDecisionAt = this.#clock.monotonic() + nextMs;
  }

  /** Undefined while no decision is due. `hasDecided`: the service has an earlier decision that still applies. */
  report({ connected, inFlight, queued }: BalancerView, hasDecided: boolean): LoadReport | undefined {
    const now = this.#clock.monotonic();
    if (now < this.#nextDecisionAt && hasDecided) return undefined;
    this.#isAsked = false;
    return {
      requestsInWindow: countArrivals(this.#window, now),
      busy: Object.values(inFlight).reduce((sum, count) => sum + count, queued),
      isComplete: connected && now - this.#startedAt >= rateWindowMs,
    };
  }
}
