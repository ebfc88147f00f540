/** The counts of one replica at a moment. */
export interface HungCounts {
  readonly slot: number;
  /** Of the service. Clients may be bound to it, so only replicas of one version are compared. */
  readonly version: number | undefined;
  /** Requests that ended without a first byte since the last first byte. */
  readonly hung: number;
  /** All such requests so far; wraps around at 2^32. */
  readonly allHung: number;
  /** Number of first bytes so far; wraps around at 2^32. */
  readonly answers: number;
  /** Requests sent there without a byte of response so far. */
  readonly unanswered: number;
  /** It was found silent, and sent no byte since. */
  readonly isStalled: boolean;
}

/** Silence this many times longer than answers take is too long. */
export const timesUsual = 4;
/** A client that gives up sooner has its own reasons, such as a search for each typed letter. */
const leastGivenUpMs = 500;

/**
 * Whether a request that its client gave up counts as hung. `silentMs`: how long the replica sent nothing meanwhile.
 * `usualMs`: how long answers take at the slowest replica. Pure.
 */
export function hasHung(silentMs: number, usualMs: number): boolean {
  return silentMs >= Math.max(leastGivenUpMs, timesUsual * usualMs);
}

interface Outcomes {
  readonly answers: number;
  readonly hung: number;
}

/**
 * A new replica may load its model with its first requests: until its first answer, its series prove nothing for so long,
 * ms. As long as `first_byte_timeout_seconds` by default.
 */
const loadingMs = 300_000;

interface Series {
  /** When the replica was first seen, monotonic ms. */
  readonly since: number;
  /** Another replica of its version serves. */
  readonly hasPeer: boolean;
  /** The counts that the next step starts from. */
  readonly last: HungCounts;
  /** `hung` when the series began to count. */
  readonly hungBefore: number;
  /** New requests have gone to other replicas since. */
  readonly isPassedOver: boolean;
  /** Outcomes of the other replicas of its version since the series began to count. */
  readonly others: Outcomes;
  /** The part of `others` until the last hung request. */
  readonly compared: Outcomes;
}

/**
 * Compares the requests in a row that hung at one replica with the outcomes of the other replicas meanwhile.
 *
 * A request can hang without a fault of the replica: it takes longer than its client waits. Such requests reach all
 * replicas of a version, because the balancer binds clients to versions only. So the share that hangs at the others is
 * the chance that one hangs here, and a series of n has this chance to the power of n.
 *
 * Turns can bind them all the same: one client of three replicas sends each third request to the same one. So the series
 * starts again when new requests first go to other replicas: then they get such requests too. Pure.
 */
export class HungSeries {
  readonly #series = new Map<number, Series>();

  /** Call it several times a second, with all replicas. `now`: monotonic ms. */
  observe(all: readonly HungCounts[], now: number): void {
    const steps = all.map((counts) => stepFrom(this.#series.get(counts.slot)?.last, counts));
    for (const [index, counts] of all.entries()) {
      const peers = steps.filter((_, at) => at !== index && all[at]?.version === counts.version);
      const step = steps[index] ?? none;
      const { slot, hung, isStalled, unanswered } = counts;
      const before = this.#series.get(slot);
      const isSame = before !== undefined && (hung > 0 || isStalled) && step.answers === 0;
      const start = isSame ? before : { hungBefore: 0, isPassedOver: false, others: none, compared: none };
      const others = peers.reduce(plus, start.others);
      const compared = step.hung > 0 || (isStalled && unanswered > 0) ? others : start.compared;
      this.#series.set(slot, { ...start, since: before?.since ?? now, hasPeer: peers.length > 0, last: counts, others, compared });
    }
    for (const slot of this.#series.keys()) if (!all.some((counts) => counts.slot === slot)) this.#series.delete(slot);
  }

  /** New requests go to other replicas from now on. */
  recordPassedOver(slot: number): void {
    const before = this.#series.get(slot);
    if (before === undefined || before.isPassedOver) return;
    this.#series.set(slot, { ...before, hungBefore: before.last.hung, isPassedOver: true, others: none, compared: none });
  }

  /** The requests that have ended at the other replicas of its version since the series began; Infinity without any. */
  othersOf(slot: number): number {
    const series = this.#series.get(slot);
    if (series?.hasPeer !== true) return Number.POSITIVE_INFINITY;
    return series.others.answers + series.others.hung;
  }

  /** The chance that a sound replica has this series of hung requests now, above 0 and up to 1. */
  chanceOf({ slot, hung, isStalled, unanswered, answers }: HungCounts, now: number): number {
    const series = this.#series.get(slot);
    if (series === undefined || !series.hasPeer || (answers === 0 && now - series.since < loadingMs)) return 1;
    const { hungBefore, compared } = series;
    // Laplace's rule of succession: without any outcome, a half.
    const share = (compared.hung + 1) / (compared.answers + compared.hung + 2);
    return share ** (Math.max(0, hung - hungBefore) + (isStalled ? unanswered : 0));
  }
}

const none: Outcomes = { answers: 0, hung: 0 };

const plus = (a: Outcomes, b: Outcomes): Outcomes => ({ answers: a.answers + b.answers, hung: a.hung + b.hung });

/** The outcomes between two moments. A slot that another replica has taken over begins again. */
function stepFrom(last: HungCounts | undefined, now: HungCounts): Outcomes {
  if (last === undefined) return none;
  return { answers: Math.max(0, (now.answers - last.answers) | 0), hung: Math.max(0, (now.allHung - last.allHung) | 0) };
}
