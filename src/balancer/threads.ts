import type { BalancerConfig } from '../domain/balancer-link.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/log.ts';
import type { SuspectReason } from './balancer-context.ts';
import type { Board } from './board.ts';
import { ServingThread } from './serving-thread.ts';
import type { Listening, SetOrder, ThreadNews, ThreadOrder } from './thread-messages.ts';

const threadScript = new URL('thread.ts', import.meta.url);

const firstBackoffMs = 50;
const longestBackoffMs = 10_000;
/** A thread that lived so long was healthy. */
const healthyMs = 30_000;

/** What the threads need. */
export interface ThreadsOptions {
  readonly config: BalancerConfig;
  readonly board: Board;
  /** Where they count for the metrics; see `metrics/row-layout.ts`. */
  readonly metrics: SharedArrayBuffer;
  readonly maxConnections: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What a thread runs; `thread.ts` when absent. */
  readonly script?: URL;
  readonly onSuspect: (replicaId: number, reason: SuspectReason) => void;
  /** `appliedByAll` may have risen. */
  readonly onApplied: () => void;
}

/** One of the numbered places for threads, and who is in it. */
interface Place {
  thread: ServingThread | undefined;
  deaths: number;
  startedAt: number;
  /** Gets why the thread in it could not begin, or undefined when it listens. */
  onStart: ((error: Error | undefined) => void) | undefined;
  onEnd: (() => void) | undefined;
}

/** All threads that serve. One that dies is replaced, and what it had counted is taken back. */
export class Threads {
  readonly #options: ThreadsOptions;
  readonly #places: readonly Place[];
  #newest: SetOrder;
  #port = 0;
  #isEnding = false;

  constructor(options: ThreadsOptions, first: SetOrder) {
    this.#options = options;
    this.#newest = first;
    this.#places = Array.from({ length: options.board.threads }, () => ({
      thread: undefined,
      deaths: 0,
      startedAt: 0,
      onStart: undefined,
      onEnd: undefined,
    }));
  }

  /**
   * Starts all of them; resolves with the port when they serve, and rejects with the system's error when one cannot. `inherited`: listening sockets
   * of a predecessor, all of which are served whatever the number of threads is.
   */
  async start(inherited: readonly number[]): Promise<number> {
    const at = (thread: number): readonly Listening[] => {
      const own = inherited.filter((_, index) => index % this.#places.length === thread).map((fd) => ({ fd }));
      return own.length > 0 ? own : [{ port: this.#port }];
    };
    // The first alone: which port it is may only be known when it listens.
    this.#port = this.#options.config.port;
    await this.#startAt(0, at(0));
    await Promise.all(this.#places.slice(1).map((_, index) => this.#startAt(index + 1, at(index + 1))));
    return this.#port;
  }

  /** Puts a set of replicas in force everywhere; `appliedByAll` tells when. */
  apply(order: SetOrder): void {
    this.#newest = order;
    this.#order(order);
  }

  /** Number of the newest set that all living threads have in force. */
  get appliedByAll(): number {
    return Math.min(this.#newest.number, ...this.#places.map(({ thread }) => thread?.applied ?? Number.POSITIVE_INFINITY));
  }

  /** Numbers of all listening sockets. */
  get fds(): readonly number[] {
    return this.#places.flatMap(({ thread }) => thread?.fds ?? []);
  }

  /** How many there are at this moment. */
  get living(): number {
    return this.#places.filter(({ thread }) => thread !== undefined).length;
  }

  /** They take no more requests; resolves when those under way have ended, or `graceMs` have. */
  stop(graceMs: number): Promise<void> {
    return this.#end({ type: 'stop', graceMs });
  }

  /** They accept no more, as another process does; resolves when all connections are closed, or `graceMs` have passed. */
  leave(graceMs: number): Promise<void> {
    return this.#end({ type: 'leave', graceMs });
  }

  async #end(order: ThreadOrder): Promise<void> {
    this.#isEnding = true;
    const ends = this.#places.map(
      (place) =>
        new Promise<void>((resolve) => {
          const before = place.onEnd;
          place.onEnd = () => {
            before?.();
            resolve();
          };
          if (place.thread === undefined) resolve();
        }),
    );
    this.#order(order);
    await Promise.all(ends);
  }

  #order(order: ThreadOrder): void {
    for (const { thread } of this.#places) thread?.order(order);
  }

  #startAt(index: number, listening: readonly Listening[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const place = this.#places[index];
      if (place === undefined) return;
      place.onStart = (error) => {
        place.onStart = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#begin(place, index, listening);
    });
  }

  #begin(place: Place, index: number, listening: readonly Listening[]): void {
    const { config, board, metrics, maxConnections, script = threadScript, clock } = this.#options;
    const setup = { config, thread: index, board: board.memory, metrics, listening, replicas: this.#newest, maxConnections };
    place.startedAt = clock.monotonic();
    const thread: ServingThread = new ServingThread(script, setup, {
      onNews: (news) => this.#onNews(place, thread, news),
      onGone: (why) => this.#onGone(place, index, why),
    });
    place.thread = thread;
  }

  #onNews(place: Place, thread: ServingThread, news: ThreadNews): void {
    switch (news.type) {
      case 'listening':
        this.#port = news.port;
        place.onStart?.(undefined);
        break;
      case 'failed':
        if (place.onStart === undefined) this.#options.logger.error(`A thread cannot listen: ${news.message}`);
        place.onStart?.(Object.assign(new Error(news.message), { code: news.code }));
        thread.end();
        break;
      case 'applied':
        this.#options.onApplied();
        break;
      case 'suspect':
        this.#options.onSuspect(news.replicaId, news.reason);
        break;
      case 'ended':
        place.onEnd?.();
        break;
    }
  }

  #onGone(place: Place, index: number, why: string): void {
    const { board, clock, logger, onApplied } = this.#options;
    place.thread = undefined;
    board.clearThread(index);
    place.onEnd?.();
    const hadStarted = place.onStart === undefined;
    place.onStart?.(new Error(why));
    // What waited only for the dead one is in force now.
    onApplied();
    if (this.#isEnding || !hadStarted) return;
    place.deaths = clock.monotonic() - place.startedAt >= healthyMs ? 1 : place.deaths + 1;
    const pauseMs = place.deaths === 1 ? 0 : Math.min(longestBackoffMs, firstBackoffMs * 2 ** (place.deaths - 2));
    logger.error({ thread: index, deaths: place.deaths, why }, 'A thread died; its connections are lost, and another one is started');
    clock.after(pauseMs, () => {
      if (!this.#isEnding) this.#begin(place, index, [{ port: this.#port }]);
    });
  }
}
