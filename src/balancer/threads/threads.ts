import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { SuspectReason } from '../exchange/balancer-context.ts';
import { threadEntry } from '../../shared/program-files.ts';
import type { Board } from '../board/board.ts';
import { ServingThread } from './serving-thread.ts';
import type { Listening, SetOrder, ThreadNews, ThreadOrder } from './thread-messages.ts';

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

/** One of the numbered seats for threads, and who is in it. */
interface Seat {
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
  readonly #seats: readonly Seat[];
  #newest: SetOrder;
  #port = 0;
  #isEnding = false;

  constructor(options: ThreadsOptions, first: SetOrder) {
    this.#options = options;
    this.#newest = first;
    this.#seats = Array.from({ length: options.board.threads }, () => ({
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
      const own = inherited.filter((_, index) => index % this.#seats.length === thread).map((fd) => ({ fd }));
      return own.length > 0 ? own : [{ port: this.#port }];
    };
    // The first alone: which port it is may only be known when it listens.
    this.#port = this.#options.config.port;
    await this.#startAt(0, at(0));
    await Promise.all(this.#seats.slice(1).map((_, index) => this.#startAt(index + 1, at(index + 1))));
    return this.#port;
  }

  /** Puts a set of replicas in force everywhere; `appliedByAll` tells when. */
  apply(order: SetOrder): void {
    this.#newest = order;
    this.#order(order);
  }

  /** Number of the newest set that all living threads have in force. */
  get appliedByAll(): number {
    return Math.min(this.#newest.number, ...this.#seats.map(({ thread }) => thread?.applied ?? Number.POSITIVE_INFINITY));
  }

  /** Numbers of all listening sockets. */
  get fds(): readonly number[] {
    return this.#seats.flatMap(({ thread }) => thread?.fds ?? []);
  }

  /** How many there are at this moment. */
  get living(): number {
    return this.#seats.filter(({ thread }) => thread !== undefined).length;
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
    const ends = this.#seats.map(
      (seat) =>
        new Promise<void>((resolve) => {
          const before = seat.onEnd;
          seat.onEnd = () => {
            before?.();
            resolve();
          };
          if (seat.thread === undefined) resolve();
        }),
    );
    this.#order(order);
    await Promise.all(ends);
  }

  #order(order: ThreadOrder): void {
    for (const { thread } of this.#seats) thread?.order(order);
  }

  #startAt(index: number, listening: readonly Listening[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const seat = this.#seats[index];
      if (seat === undefined) return;
      seat.onStart = (error) => {
        seat.onStart = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
      this.#begin(seat, index, listening);
    });
  }

  #begin(seat: Seat, index: number, listening: readonly Listening[]): void {
    const { config, board, metrics, maxConnections, script = threadEntry('balancer/threads/thread'), clock } = this.#options;
    const setup = { config, thread: index, board: board.memory, metrics, listening, replicas: this.#newest, maxConnections };
    seat.startedAt = clock.monotonic();
    const thread: ServingThread = new ServingThread(script, setup, {
      onNews: (news) => this.#onNews(seat, thread, news),
      onGone: (why) => this.#onGone(seat, index, why),
    });
    seat.thread = thread;
  }

  #onNews(seat: Seat, thread: ServingThread, news: ThreadNews): void {
    switch (news.type) {
      case 'listening':
        this.#port = news.port;
        seat.onStart?.(undefined);
        break;
      case 'failed':
        if (seat.onStart === undefined) this.#options.logger.error(`A thread cannot listen: ${news.message}`);
        seat.onStart?.(Object.assign(new Error(news.message), { code: news.code }));
        thread.end();
        break;
      case 'applied':
        this.#options.onApplied();
        break;
      case 'suspect':
        this.#options.onSuspect(news.replicaId, news.reason);
        break;
      case 'ended':
        seat.onEnd?.();
        break;
    }
  }

  #onGone(seat: Seat, index: number, why: string): void {
    const { board, clock, logger, onApplied } = this.#options;
    seat.thread = undefined;
    board.clearThread(index);
    seat.onEnd?.();
    const hadStarted = seat.onStart === undefined;
    seat.onStart?.(new Error(why));
    // What waited only for the dead one is in force now.
    onApplied();
    if (this.#isEnding || !hadStarted) return;
    seat.deaths = clock.monotonic() - seat.startedAt >= healthyMs ? 1 : seat.deaths + 1;
    const pauseMs = seat.deaths === 1 ? 0 : Math.min(longestBackoffMs, firstBackoffMs * 2 ** (seat.deaths - 2));
    logger.error({ thread: index, deaths: seat.deaths, why }, 'A thread died; its connections are lost, and another one is started');
    clock.after(pauseMs, () => {
      if (!this.#isEnding) this.#begin(seat, index, [{ port: this.#port }]);
    });
  }
}
