import { addArrivals, countArrivals, rateWindowMs, type RequestWindow } from '../../domain/autoscale.ts';
import type { LoadReport } from '../../domain/decision.ts';
import type { Clock } from '../../shared/clock.ts';
import type { BalancerView } from './balancer-client.ts';

/** Length of the slots of a report, and their number at most. */
const slotSeconds = 10;
const mostSlots = 60;

/** Times over which ongoing requests are averaged, s. */
const [minuteSeconds, momentSeconds] = [60, 6];

/** What was counted in one second. */
interface CountedSecond {
  readonly second: number;
  readonly arrivals: number;
  /** Sum and number of the reports of requests in flight and queued. */
  readonly busy: number;
  readonly reports: number;
}

/** Counts the requests of a service and decides when an autoscaling decision is due. */
export class LoadMeter {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #window: RequestWindow = [];
  #seconds: CountedSecond[] = [];
  #nextDecisionAt = Number.NEGATIVE_INFINITY;
  #isAsked = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
  }

  /** `count` requests arrived since the last report of the balancer. */
  arrivals(count: number, view: Pick<BalancerView, 'inFlight' | 'queued'>): void {
    const now = this.#clock.monotonic();
    this.#window = addArrivals(this.#window, now, count);
    const second = Math.floor(now / 1_000);
    const last = this.#seconds.at(-1);
    const { arrivals, busy, reports } = last?.second === second ? last : { arrivals: 0, busy: 0, reports: 0 };
    if (last?.second === second) this.#seconds.pop();
    this.#seconds.push({ second, arrivals: arrivals + count, busy: busy + busyOf(view), reports: reports + 1 });
    const oldest = second - slotSeconds * mostSlots;
    while (this.#seconds[0] !== undefined && this.#seconds[0].second < oldest) this.#seconds.shift();
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
  report(view: BalancerView, hasDecided: boolean): LoadReport | undefined {
    const now = this.#clock.monotonic();
    if (now < this.#nextDecisionAt && hasDecided) return undefined;
    this.#isAsked = false;
    const { connected, inFlight, queued } = view;
    return {
      requestsInWindow: countArrivals(this.#window, now),
      busy: busyOf(view),
      isComplete: connected && now - this.#startedAt >= rateWindowMs,
      detail: {
        recent: this.#recent(now),
        ongoing: { minute: this.#ongoing(now, minuteSeconds, view), moment: this.#ongoing(now, momentSeconds, view) },
        queued,
        inFlight,
      },
    };
  }

  #recent(now: number): readonly number[] {
    const second = Math.floor(now / 1_000);
    const slots = Math.min(mostSlots, Math.floor((now - this.#startedAt) / (slotSeconds * 1_000)));
    const counts = Array.from({ length: slots }, () => 0);
    for (const one of this.#seconds) {
      const slot = Math.floor((second - one.second) / slotSeconds);
      if (slot < slots) counts[slot] = (counts[slot] ?? 0) + one.arrivals;
    }
    return counts;
  }

  /** The mean over the last seconds. The balancer reports at least once in each. */
  #ongoing(now: number, seconds: number, view: BalancerView): number {
    const since = Math.floor(now / 1_000) - seconds;
    const recent = this.#seconds.filter(({ second }) => second > since);
    if (recent.length === 0) return busyOf(view);
    return recent.reduce((sum, { busy, reports }) => sum + busy / reports, 0) / recent.length;
  }
}

const busyOf = ({ inFlight, queued }: Pick<BalancerView, 'inFlight' | 'queued'>): number =>
  Object.values(inFlight).reduce((sum, count) => sum + count, queued);
