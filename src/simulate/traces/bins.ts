/** The longest trace, days. A wrong unit of time would otherwise ask for more memory than a machine has. */
export const maxTraceDays = 100;

const maxSeconds = maxTraceDays * 86_400;

/** Requests by the second of their arrival. Arrivals may come in any order, as in a log that is written at the end. */
export class Bins {
  readonly #counts = new Map<number, number>();
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;
  /** The time of the first arrival that was added, s. */
  #origin: number | undefined;

  /** Adds one request at a time in s from any start. Seconds count from the first such call: a trace has no whole seconds. */
  addArrival(time: number): boolean {
    this.#origin ??= time;
    return this.add(time - this.#origin, 1);
  }

  /** Adds requests at a time in s. False when the trace would become longer than `maxTraceDays`. */
  add(seconds: number, requests: number): boolean {
    const bin = Math.floor(seconds);
    const first = Math.min(this.#first, bin);
    const last = Math.max(this.#last, bin);
    if (last - first >= maxSeconds) return false;
    this.#first = first;
    this.#last = last;
    this.#counts.set(bin, (this.#counts.get(bin) ?? 0) + requests);
    return true;
  }

  /** The time of the earliest second, s, as `addArrival` got it; 0 for a trace that only numbers its seconds. */
  get startTime(): number {
    return this.#counts.size === 0 ? 0 : (this.#origin ?? 0) + this.#first;
  }

  /** The requests of each second, from the first to the last. */
  perSecond(): Float64Array {
    if (this.#counts.size === 0) return new Float64Array(0);
    const counts = new Float64Array(this.#last - this.#first + 1);
    for (const [bin, requests] of this.#counts) counts[bin - this.#first] = requests;
    return counts;
  }
}
