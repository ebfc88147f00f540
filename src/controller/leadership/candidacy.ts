import { hostname } from 'node:os';
import { Worker } from 'node:worker_threads';
import { holderName } from '../../domain/leadership.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { threadEntry } from '../../shared/program-files.ts';
import { randomHex } from '../../shared/random-hex.ts';
import type { KeeperNews, KeeperOrder, KeeperSetup } from './keeper-messages.ts';
import type { LeaseSource } from './lease-source.ts';

const beatMs = 1_000;
/** How long giving the lease back may take, ms: without an answer the others wait until it has run out. */
const releaseMs = 2_500;

/** What the controller hears of its lease. */
export interface CandidacyListeners {
  /** Another one leads and lives. */
  otherLeads(holder: string): void;
  /** It led and may not act any more; it has to end. Also when the thread that kept the lease died. */
  lost(why: string): void;
}

/** This daemon's claim to lead: asks for the lease in a thread of its own until it has it, and keeps it. */
export class Candidacy {
  /** The term with which it leads, once it does. */
  readonly elected: Promise<number>;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #cancelBeat: CancelTimer;
  readonly #released = Promise.withResolvers<void>();
  #isReleasing = false;

  constructor(source: LeaseSource, fencePath: string, clock: Clock, listeners: CandidacyListeners) {
    const setup: KeeperSetup = { source, self: holderName(hostname(), randomHex(8)), fencePath };
    const { promise, resolve } = Promise.withResolvers<number>();
    this.elected = promise;
    this.#clock = clock;
    this.#worker = new Worker(threadEntry('controller/leadership/keeper'), { workerData: setup });
    this.#worker.on('message', (news: KeeperNews) => {
      if (news.type === 'elected') resolve(news.term);
      else if (news.type === 'other-leads') listeners.otherLeads(news.holder);
      else if (news.type === 'released') this.#released.resolve();
      else if (!this.#isReleasing) listeners.lost(news.why);
    });
    let failure = 'the thread that keeps it ended';
    this.#worker.on('error', (error: unknown) => (failure = error instanceof Error ? error.message : String(error)));
    this.#worker.on('exit', () => {
      this.#released.resolve();
      if (!this.#isReleasing) listeners.lost(failure);
    });
    this.#cancelBeat = clock.every(beatMs, () => this.#order({ type: 'beat' }));
  }

  /** Gives the lease back, so that another one leads at once. From the call on nobody here may act. */
  async release(): Promise<void> {
    this.#isReleasing = true;
    this.#cancelBeat();
    this.#order({ type: 'release' });
    const waiting = new AbortController();
    await Promise.race([this.#released.promise, this.#clock.sleep(releaseMs, waiting.signal)]);
    // What still slept would keep the process from ending.
    waiting.abort();
    await this.#worker.terminate();
  }

  #order(order: KeeperOrder): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
    this.#worker.postMessage(order);
  }
}
