import type { Fence } from '../../shared/fence.ts';
import { lostLeaseExitCode } from './exit-code.ts';
import { processFence, watchFence } from './fence-file.ts';
import type { LeaseSource } from './lease-source.ts';
import { Seat, type SeatOptions } from './seat.ts';

/** What leading needs. */
export interface LeadOptions extends Pick<SeatOptions, 'paths' | 'clock' | 'log'> {
  /** Undefined where controllers have no rivals. */
  readonly source: LeaseSource | undefined;
  /** Aborts when this daemon is to end. */
  readonly signal: AbortSignal;
  /** Ends this process at once. */
  readonly exit: (code: number) => void;
}

/** The lead of this daemon, which it always has where it has no rivals. When it is lost, or left, nothing that was started for it goes on. */
export class Lead {
  readonly #options: LeadOptions;
  readonly #seat: Seat | undefined;
  #term: number | undefined;
  #stopActing: () => void = () => undefined;
  #left: Promise<void> = Promise.resolve();

  constructor(options: LeadOptions) {
    this.#options = options;
    const { source, paths, clock, log } = options;
    this.#seat = source === undefined ? undefined : new Seat({ source, paths, clock, log, onLost: () => this.#lose() });
  }

  /** Undefined where there are no rivals. */
  get term(): number | undefined {
    return this.#term;
  }

  /** What lets calls through while it leads. */
  get fence(): Fence {
    const { paths, clock } = this.#options;
    return processFence(paths.fence, this.#term, clock);
  }

  /** Settles when this daemon leads; false when it is to end before. */
  async taken(): Promise<boolean> {
    const { signal, clock } = this.#options;
    this.#term = await this.#seat?.taken(signal);
    if (signal.aborted) {
      await this.#seat?.leave();
      return false;
    }
    if (this.#seat === undefined) return true;
    signal.addEventListener('abort', () => this.#leave(), { once: true });
    watchFence(this.fence, clock, () => signal.aborted || this.#lose());
    return true;
  }

  /** What is to be called, at once, when nothing may be done any more. */
  whenOver(stopActing: () => void): void {
    this.#stopActing = stopActing;
  }

  /** Settles when another one can lead, once this daemon is to end. */
  get left(): Promise<void> {
    return this.#left;
  }

  /** The next leader must not wait for what this one still has to put away, and nothing of it may act beside that one. */
  #leave(): void {
    this.#stopActing();
    this.#left = this.#seat?.leave() ?? Promise.resolve();
  }

  #lose(): void {
    this.#stopActing();
    this.#options.exit(lostLeaseExitCode);
  }
}
