import type { Clock } from '../../shared/clock.ts';

/** Caches answers for a while, including pending ones; drops failures at once. */
export class Remembered<T> {
  readonly #clock: Clock;
  readonly #forMs: number;
  readonly #answers = new Map<string, { readonly until: number; readonly answer: Promise<T> }>();

  constructor(clock: Clock, forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  clear(): void {
    this.#answers.clear();
  }

  async get(question: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(question);
    if (known !== undefined && known.until > this.#clock.monotonic()) return known.answer;
    const answer = ask();
    this.#answers.set(question, { until: this.#clock.monotonic() + this.#forMs, answer });
    try {
      return await answer;
    } catch (error) {
      if (this.#answers.get(question)?.answer === answer) this.#answers.delete(question);
      throw error;
    }
  }
}
