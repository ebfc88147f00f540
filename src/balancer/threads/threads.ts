import { Worker } from 'node:worker_threads';
import type { BalancerConfig, SuspectReason } from '../../domain/balancer-link.ts';
import { delayMs, restartBackoff } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { threadEntry } from '../../shared/program-files.ts';
import type { Board } from '../board/board.ts';
import type { FileLimits } from '../board/file-budget.ts';
import type { TlsMaterial } from '../tls/tls-files.ts';
import type { Listening, SetOrder, ThreadNews, ThreadOrder, ThreadSetup } from './thread-messages.ts';

/** A thread that lived this long was healthy. */
const healthyMs = 30_000;

interface ThreadsOptions {
  readonly config: BalancerConfig;
  readonly board: Board;
  /** Where they count for the metrics; see `metrics/row-layout.ts`. */
  readonly metrics: SharedArrayBuffer;
  readonly limits: FileLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `thread.ts` when absent. */
  readonly script?: URL;
  readonly onSuspect: (replicaId: number, reason: SuspectReason) => void;
  /** Called when a request is the first in its thread to wait while no replica serves. */
  readonly onHeld: () => void;
  /** Undefined when the endpoint speaks no TLS. */
  readonly tls: TlsMaterial | undefined;
  /** Called when `appliedByAll` may have risen. */
  readonly onApplied: () => void;
  /** Called when `fds` has changed after the start: a thread died, or its successor listens. */
  readonly onSockets: () => void;
}

/** One numbered thread position, with the thread that runs there now. */
interface ThreadSlot {
  thread: ServingThread | undefined;
  deaths: number;
  startedAt: number;
  /** Called without an error once the thread listens. */
  onStart: ((error: Error | undefined) => void) | undefined;
  onEnd: (() => void) | undefined;
}

/** All serving threads. A dead thread is replaced, and its counts of current values are cleared. */
export class Threads {
  readonly #options: ThreadsOptions;
  readonly #slots: readonly ThreadSlot[];
  #newest: SetOrder;
  #tls: TlsMaterial | undefined;
  #port = 0;
  #isEnding = false;

  constructor(options: ThreadsOptions, first: SetOrder) {
    this.#options = options;
    this.#newest = first;
    this.#tls = options.tls;
    this.#slots = Array.from({ length: options.board.threads }, () => ({
      thread: undefined,
      deaths: 0,
      startedAt: 0,
      onStart: undefined,
      onEnd: undefined,
    }));
  }

  /**
   * Starts all threads. Resolves with the port when they serve; rejects with the system's error when one cannot.
   * `inherited`: a predecessor's listening sockets, which are all served, whatever the number of threads.
   */
  async start(inherited: readonly number[]): Promise<number> {
    const at = (thread: number): readonly Listening[] => {
      const own = inherited.filter((_, index) => index % this.#slots.length === thread).map((fd) => ({ fd }));
      return own.length > 0 ? own : [{ port: this.#port }];
    };
    this.#port = this.#options.config.port;
    // Without a port in the configuration, it is known only once the first thread listens.
    const isFirstAlone = this.#port === 0;
    if (isFirstAlone) await this.#startAt(0, at(0));
    const others = [...this.#slots.keys()].slice(isFirstAlone ? 1 : 0);
    await Promise.all(others.map((index) => this.#startAt(index, at(index))));
    return this.#port;
  }

  /** Puts a set in force in all threads; `appliedByAll` reports when. */
  apply(order: SetOrder): void {
    this.#newest = order;
    this.#order(order);
  }

  /** Also applies to threads that start later. */
  renewTls(material: TlsMaterial): void {
    this.#tls = material;
    this.#order({ type: 'tls', material });
  }

  /** Number of the newest set that all living threads have in force. */
  get appliedByAll(): number {
    return Math.min(this.#newest.number, ...this.#slots.map(({ thread }) => thread?.applied ?? Number.POSITIVE_INFINITY));
  }

  /** Numbers of all listening sockets. */
  get fds(): readonly number[] {
    return this.#slots.flatMap(({ thread }) => thread?.fds ?? []);
  }

  get living(): number {
    return this.#slots.filter(({ thread }) => thread !== undefined).length;
  }

  /** Takes no more requests. Resolves when running requests have ended, or after `graceMs`. */
  stop(graceMs: number): Promise<void> {
    return this.#end({ type: 'stop', graceMs });
  }

  /** Accepts no more, because another process does. Resolves when all connections are closed, or after `graceMs`. */
  handOver(graceMs: number): Promise<void> {
    return this.#end({ type: 'leave', graceMs });
  }

  async #end(order: ThreadOrder): Promise<void> {
    this.#isEnding = true;
    const ends = this.#slots.map(
      (slot) =>
        new Promise<void>((resolve) => {
          const before = slot.onEnd;
          slot.onEnd = () => {
            before?.();
            resolve();
          };
          if (slot.thread === undefined) resolve();
        }),
    );
    this.#order(order);
    await Promise.all(ends);
  }

  #order(order: ThreadOrder): void {
    for (const { thread } of this.#slots) thread?.order(order);
  }

  #startAt(index: number, listening: readonly Listening[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const slot = this.#slots[index];
      if (slot === undefined) return;
      slot.onStart = (error) => {
        slot.onStart = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#begin(slot, index, listening);
    });
  }

  #begin(slot: ThreadSlot, index: number, listening: readonly Listening[]): void {
    const { config, board, metrics, limits, script = threadEntry('balancer/threads/thread'), clock } = this.#options;
    const setup = {
      config,
      thread: index,
      board: board.memory,
      metrics,
      listening,
      replicas: this.#newest,
      tls: this.#tls,
      limits,
    };
    slot.startedAt = clock.monotonic();
    const thread: ServingThread = new ServingThread(script, setup, {
      onNews: (news) => this.#onNews(slot, thread, news),
      onGone: (why) => this.#onGone(slot, index, why),
    });
    slot.thread = thread;
  }

  #onNews(slot: ThreadSlot, thread: ServingThread, news: ThreadNews): void {
    switch (news.type) {
      case 'listening':
        this.#port = news.port;
        if (slot.onStart === undefined) this.#options.onSockets();
        slot.onStart?.(undefined);
        break;
      case 'failed':
        if (slot.onStart === undefined) this.#options.logger.error(`A thread cannot listen: ${news.message}`);
        slot.onStart?.(Object.assign(new Error(news.message), { code: news.code }));
        thread.end();
        break;
      case 'applied':
        this.#options.onApplied();
        break;
      case 'suspect':
        this.#options.onSuspect(news.replicaId, news.reason);
        break;
      case 'held':
        this.#options.onHeld();
        break;
      case 'ended':
        slot.onEnd?.();
        break;
    }
  }

  #onGone(slot: ThreadSlot, index: number, why: string): void {
    const { board, clock, logger, onApplied, onSockets } = this.#options;
    slot.thread = undefined;
    board.clearThread(index);
    slot.onEnd?.();
    const hadStarted = slot.onStart === undefined;
    slot.onStart?.(new Error(why));
    // A set that waited only for the dead thread is in force now.
    onApplied();
    if (this.#isEnding || !hadStarted) return;
    onSockets();
    slot.deaths = clock.monotonic() - slot.startedAt >= healthyMs ? 1 : slot.deaths + 1;
    logger.error({ thread: index, deaths: slot.deaths, why }, 'A thread died; its connections are lost, and another one is started');
    clock.after(delayMs(restartBackoff, slot.deaths - 1), () => {
      if (!this.#isEnding) this.#begin(slot, index, [{ port: this.#port }]);
    });
  }
}

/**
 * Size of the heap for new objects, MiB. With Node's default of 16, the collector runs so often that it promotes many
 * short-lived objects of long uploads and streams.
 */
const youngGenerationMb = 64;

interface ThreadListeners {
  readonly onNews: (news: ThreadNews) => void;
  /** `why` is empty when the thread ended by itself. */
  readonly onGone: (why: string) => void;
}

class ServingThread {
  readonly #worker: Worker;
  /** Number of the newest set in force; the thread serves no requests before its first set. */
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

  end(): void {
    void this.#worker.terminate();
  }
}
