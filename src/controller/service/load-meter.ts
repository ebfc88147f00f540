import { type RequestWindow, addArrivals, rateWindowMs, countArrivals } from '../../domain/autoscale.ts';
import type { LoadReport } from '../../domain/decision.ts';
import type { Clock } from '../../shared/clock.ts';
import type { BalancerView } from './balancer-client.ts';

/** Counts the requests of a service and decides when an autoscaling decision is due. */
export class LoadMeter {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #window: RequestWindow = [];
  #nextDecisionAt = Number.NEGATIVE_INFINITY;
  #isAsked = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  arrivals(count: number): void {
    this.#window = addArrivals(this.#window, this.#clock.monotonic(), count);
  }

  decideNow(): void {
    this.#isAsked = true;
    this.#nextDecisionAt = Number.NEGATIVE_INFINITY;
  }

  /** Call after a decision was committed. The next is due after `nextMs`, unless one was requested meanwhile. */
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
