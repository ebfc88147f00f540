import { unlessAborted } from '../../shared/unless-aborted.ts';

/** Lets so many in at a time; the others wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  /** Runs `use` when there is a place. Whoever gives up waiting takes none. */
  async run<Result>(use: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    await this.#enter(signal);
    try {
      return await use();
    } finally {
      this.#leave();
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
      // Its turn had come already: it goes to the next one.
      if (at < 0) this.#leave();
      else this.#waiting.splice(at, 1);
      throw error;
    }
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
