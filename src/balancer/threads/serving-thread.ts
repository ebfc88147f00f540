import { Worker } from 'node:worker_threads';
import type { ThreadNews, ThreadOrder, ThreadSetup } from './thread-messages.ts';

/**
 * Where objects of requests live until they are found to stay, MiB. Most die young; with Node's default of 16 they are looked through so often that
 * many of a long upload or stream are taken for old.
 */
const youngGenerationMb = 64;

/** What one thread tells. */
export interface ThreadListeners {
  readonly onNews: (news: ThreadNews) => void;
  /** It is gone; `why` is empty when it ended by itself. */
  readonly onGone: (why: string) => void;
}

/** One thread that serves, from its start to its end. */
export class ServingThread {
  readonly #worker: Worker;
  /** Number of the newest set of replicas that it has in force: it serves nobody before it has its first. */
  #applied: number;
  #fds: readonly number[] = [];

  constructor(script: URL, setup: ThreadSetup, listeners: ThreadListeners) {
    this.#applied = setup.replicas.number;
    let why = '';
    this.#worker = new Worker(script, { workerData: setup, resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb } });
    this.#worker.on('message', (news: ThreadNews) => {
      if (news.type === 'applied') this.#applied = news.number;
      else if (news.type === 'listening') this.#fds = news.fds;
      listeners.onNews(news);
    });
    this.#worker.on('error', (error: unknown) => {
      why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    this.#worker.on('exit', () => listeners.onGone(why));
  }

  get applied(): number {
    return this.#applied;
  }

  /** Numbers of its listening sockets; empty until it listens. */
  get fds(): readonly number[] {
    return this.#fds;
  }

  order(order: ThreadOrder): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node, not a window
    this.#worker.postMessage(order);
  }

  /** Ends it at once. */
  end(): void {
    void this.#worker.terminate();
  }
}
