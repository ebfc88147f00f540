import type { Fence } from '../../shared/fence.ts';
import { type LeaseSource, lostLeaseExitCode } from './lease-source.ts';
import { processFence, watchFence } from './fence-file.ts';
import { LeaderLease, type LeaderLeaseOptions } from './leader-lease.ts';

interface LeadershipOptions extends Pick<LeaderLeaseOptions, 'paths' | 'clock' | 'log'> {
  /** Undefined where controllers have no rivals. */
  readonly source: LeaseSource | undefined;
  readonly signal: AbortSignal;
  readonly exit: (code: number) => void;
}

/** This daemon's leadership, permanent without rivals. When lost or released, all work started under it stops. */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #lease: LeaderLease | undefined;
  #term: number | undefined;
  #stopActing: () => void = () => undefined;
  #released: Promise<void> = Promise.resolve();

  constructor(options: LeadershipOptions) {
    this.#options = options;
    const { source, paths, clock, log } = options;
    this.#lease = source === undefined ? undefined : new LeaderLease({ source, paths, clock, log, onLost: () => this.#lose() });
  }

  /** Undefined where controllers have no rivals. */
  get term(): number | undefined {
    return this.#term;
  }

  get fence(): Fence {
    const { paths, clock } = this.#options;
    return processFence(paths.fence, this.#term, clock);
  }

  /** Settles when this daemon leads; false when it must end before that. */
  async acquired(): Promise<boolean> {
    const { signal, clock } = this.#options;
    this.#term = await this.#lease?.acquired(signal);
    if (signal.aborted) {
      await this.#lease?.release();
      return false;
    }
    if (this.#lease === undefined) return true;
    signal.addEventListener('abort', () => this.#release(), { once: true });
    watchFence(this.fence, clock, () => signal.aborted || this.#lose());
    return true;
  }

  /** Sets the callback that runs at once when this daemon may not act any more. */
  whenOver(stopActing: () => void): void {
    this.#stopActing = stopActing;
  }

  /** Settles when another controller can lead, once this daemon has to end. */
  get released(): Promise<void> {
    return this.#released;
  }

  /** The next leader must not wait for this daemon's cleanup, and this daemon must not act beside it. */
  #release(): void {
    this.#stopActing();
    this.#released = this.#lease?.release() ?? Promise.resolve();
  }

  #lose(): void {
    this.#stopActing();
    this.#options.exit(lostLeaseExitCode);
  }
}
