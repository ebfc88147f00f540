import { unlessAborted } from '../../shared/deadline.ts';

/** Admits so many at a time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(slots: number) {
    this.#free = slots;
  }

  /** A caller that aborts while waiting takes no slot. */
  async run<Result>(use: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    await this.#enter(signal);
    try {
      return await use();
    } finally {
      this.#release();
    }
  }

  async #enter(signal: AbortSignal | undefined): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise: turn, resolve: enter } = Promise.withResolvers<void>();
    this.#waiting.push(enter);
    try {
      await unlessAborted(turn, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(enter);
      // The aborted caller already held a slot: the next caller gets it.
      if (at < 0) this.#release();
      else this.#waiting.splice(at, 1);
      throw error;
    }
  }

  #release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
