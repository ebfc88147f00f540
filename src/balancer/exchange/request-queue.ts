import type { RequestQueueLimits } from '../../domain/balancer-link.ts';
import type { Deadlines, Timed } from '../transport/deadlines.ts';

/**
 * A queued request; it may be queued several times. Each time exactly one of the two callbacks is called, unless the
 * request leaves first.
 */
export interface QueueEntry {
  /** Monotonic ms, set on the first entry: a failed try does not prolong the wait. */
  giveUpAt: number | undefined;
  /** A replica may be available now. */
  tryAgain(): void;
  /** The request has waited for the maximum time. */
  giveUp(): void;
}

/**
 * Why a request cannot be queued: the queue is full, no replica is expected in time, or the request has waited for the
 * maximum time.
 */
export type QueueRefusal = 'full' | 'hopeless' | 'late';

/** The size of the queues of all threads together. */
export interface QueueTally {
  /** Sets the size of this thread's queue: requests, and bytes of their bodies. */
  set(requests: number, bytes: number): void;
  /** The requests and bytes queued in all threads. */
  readonly requests: number;
  readonly bytes: number;
}

/** What a request queue needs. */
interface RequestQueueOptions {
  readonly deadlines: Deadlines;
  readonly limits: RequestQueueLimits;
  readonly tally: QueueTally;
  /** The number of threads, each with a queue like this one: each releases its share. */
  readonly threads: number;
}

/**
 * A service without a replica for this long does not recover within moments. Its clients are answered at once, unless
 * the service scales from zero.
 */
const recentlyMs = 30_000;
/** How often a queued request tries again without news, ms: a replica that refused may have recovered. */
const retryIntervalMs = 300;
/** How many queued requests may be released to one replica at first, from all threads. */
const firstWindow = 16;

/**
 * The request queue: requests that found no replica wait for the next one instead of failing. First come, first served.
 * Requests that arrive while others wait for the first replica queue behind them.
 *
 * The queue does not overload a new replica. A window limits the released requests that have no answer yet. Each answer
 * opens the window by one, as in TCP (RFC 5681, "slow start"). Each periodic try opens it by its first size, for
 * replicas that take minutes for an answer.
 */
export class RequestQueue implements Timed {
  readonly #options: RequestQueueOptions;
  /** In order of arrival, with the bytes that are held for each. */
  readonly #arrived = new Map<QueueEntry, number>();
  /** Requests whose last try found no replica: they come first. */
  readonly #returned = new Map<QueueEntry, number>();
  /** Released, and not answered yet. */
  readonly #released = new Set<QueueEntry>();
  #bytes = 0;
  #window = 0;
  #servedAt = Number.NEGATIVE_INFINITY;
  /** The set of replicas is known. Until then, a replica may still exist. */
  #isSetKnown = false;
  #serving = 0;
  /** A request came while no replica served, and the queue has not been emptied since. */
  #isHeld = false;
  deadlineAt = Number.POSITIVE_INFINITY;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
    options.deadlines.add(this);
  }

  /** Requests queued in this thread. */
  get size(): number {
    return this.#arrived.size + this.#returned.size;
  }

  /** Whether an arriving request must queue behind others, even if a replica serves. */
  get mustWait(): boolean {
    return this.#isHeld;
  }

  /** Queues a request of whose body `heldBytes` are held; or returns why it must be answered at once. */
  enter(entry: QueueEntry, heldBytes: number): QueueRefusal | undefined {
    const { limits, tally, deadlines } = this.#options;
    const { now } = deadlines;
    const isReturning = this.#released.delete(entry);
    const isReplicaExpected = !this.#isSetKnown || this.#serving > 0 || limits.fromZero || now - this.#servedAt < recentlyMs;
    entry.giveUpAt ??= now + limits.timeoutMs;
    if (entry.giveUpAt <= now) return isReturning ? 'late' : 'hopeless';
    if (!isReplicaExpected) return 'hopeless';
    if (tally.requests >= limits.maxRequests || tally.bytes + heldBytes > limits.maxBytes) return 'full';
    (isReturning ? this.#returned : this.#arrived).set(entry, heldBytes);
    this.#bytes += heldBytes;
    if (this.#serving === 0) this.#isHeld = true;
    this.#changed();
    this.deadlineAt = Math.min(this.deadlineAt, now + retryIntervalMs);
    return undefined;
  }

  /**
   * More of a queued request's body was read. False when there is no room for it; the request must then leave the
   * queue.
   */
  addBytes(entry: QueueEntry, bytes: number): boolean {
    const queue = this.#returned.has(entry) ? this.#returned : this.#arrived;
    const held = queue.get(entry);
    if (held === undefined) return true;
    if (this.#options.tally.bytes + bytes > this.#options.limits.maxBytes) return false;
    queue.set(entry, held + bytes);
    this.#bytes += bytes;
    this.#changed();
    return true;
  }

  /** The request was answered, or its client disconnected. Does nothing for an unknown request. */
  finish(entry: QueueEntry): void {
    this.#remove(entry);
    if (!this.#released.delete(entry)) return;
    this.#window += 1;
    this.#releaseNext();
  }

  /**
   * A new set of replicas is in force, of which `serving` serve. If the first set has none, queued requests are
   * answered at once, unless the service scales from zero.
   */
  replicasChanged(serving: number): void {
    const isFirstSetEmpty = !this.#isSetKnown && serving === 0 && !this.#options.limits.fromZero;
    this.#isSetKnown = true;
    if (this.#serving > 0 && serving === 0) this.#servedAt = this.#options.deadlines.now;
    if (this.#serving === 0) this.#window = 0;
    this.#serving = serving;
    this.#window = Math.max(this.#window, this.#firstWindow);
    if (isFirstSetEmpty) this.#giveUp(() => true);
    this.#releaseNext();
  }

  onDeadline(): void {
    const { now } = this.#options.deadlines;
    this.#giveUp(({ giveUpAt = now }) => giveUpAt <= now);
    this.#window = this.size === 0 ? this.#firstWindow : this.#window + this.#firstWindow;
    this.#releaseNext();
    this.deadlineAt = this.size === 0 ? Number.POSITIVE_INFINITY : now + retryIntervalMs;
  }

  get #firstWindow(): number {
    return Math.ceil((firstWindow * this.#serving) / this.#options.threads);
  }

  #giveUp(isOver: (entry: QueueEntry) => boolean): void {
    for (const entry of [...this.#returned.keys(), ...this.#arrived.keys()]) {
      if (!isOver(entry)) continue;
      this.#remove(entry);
      entry.giveUp();
    }
  }

  /** Requests that find no replica enter again. They are not released again in the same turn. */
  #releaseNext(): void {
    const free = this.#window - this.#released.size;
    if (this.#serving === 0 || free <= 0 || this.size === 0) return;
    const next = [...this.#returned.keys(), ...this.#arrived.keys()].slice(0, free);
    for (const entry of next) {
      this.#remove(entry);
      this.#released.add(entry);
      entry.tryAgain();
    }
  }

  #remove(entry: QueueEntry): void {
    const held = this.#returned.get(entry) ?? this.#arrived.get(entry);
    if (held === undefined) return;
    this.#returned.delete(entry);
    this.#arrived.delete(entry);
    this.#bytes -= held;
    this.#changed();
  }

  #changed(): void {
    if (this.size === 0 && this.#serving > 0) this.#isHeld = false;
    this.#options.tally.set(this.size, this.#bytes);
  }
}
