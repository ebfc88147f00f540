import type { RequestQueueLimits } from '../../domain/balancer-link.ts';
import type { ExpectedReplica } from '../../domain/expected-replica.ts';
import type { RoomSignal } from '../board/room-signal.ts';
import type { Deadlines, Timed } from '../transport/deadlines.ts';

/** A request that may be queued several times. Each time it gets exactly one callback, unless it leaves first. */
export interface QueueEntry {
  /** Monotonic ms, set on the first entry: a failed try does not prolong the wait. */
  giveUpAt: number | undefined;
  /** A replica may be available now. */
  tryAgain(): void;
  giveUp(): void;
}

/** `hopeless`: no replica is expected in time. `late`: the request has waited for the maximum time. */
export type QueueRefusal = 'full' | 'hopeless' | 'late';

/** The size of the queues of all threads together. */
export interface QueueTally {
  set(requests: number, bytes: number): void;
  readonly requests: number;
  readonly bytes: number;
}

interface RequestQueueOptions {
  readonly deadlines: Deadlines;
  readonly limits: RequestQueueLimits;
  readonly tally: QueueTally;
  /** Each thread has such a queue and releases its share. */
  readonly threads: number;
  /** Wakes the queue when a full replica may have room. */
  readonly room: Pick<RoomSignal, 'next' | 'isAwaited' | 'passOn' | 'withdraw'>;
  /** Called when a request is the first to wait while no replica serves. */
  readonly onHeld: () => void;
}

/** A service that lost its last replica this long ago fails requests at once, unless it scales from zero. */
const recentlyMs = 30_000;
/** How often queued requests try again without news, ms: a replica that refused may have recovered. */
const retryIntervalMs = 300;
/** How many queued requests all threads together first release per replica. */
const firstWindow = 16;

/**
 * Holds requests that found no replica, or each one full, in order of arrival. Later requests queue behind those that wait
 * for the first replica or for a full one.
 *
 * A window protects new replicas: it limits the released requests without an answer. Each answer opens it by one, as in
 * TCP (RFC 5681, "slow start"). Each periodic try opens it by its first size, for replicas that take minutes.
 */
export class RequestQueue implements Timed {
  readonly #options: RequestQueueOptions;
  /** In order of arrival, with the bytes held for each. */
  readonly #arrived = new Map<QueueEntry, number>();
  /** Requests whose last try found no replica: they come first. */
  #returned = new Map<QueueEntry, number>();
  readonly #released = new Set<QueueEntry>();
  #bytes = 0;
  #window = 0;
  #servedAt = Number.NEGATIVE_INFINITY;
  /** Until the first set of replicas arrives, a replica may exist. */
  #isSetKnown = false;
  #serving = 0;
  /** A request came while no replica served, and the queue has not been emptied since. */
  #isHeld = false;
  /** A request found each replica full, and the queue has not been emptied since. */
  #lacksRoom = false;
  /** The same of the last request that was released. */
  #hasFoundFull = false;
  deadlineAt = Number.POSITIVE_INFINITY;
  /** The replica that the requests wait for, as far as the reconciler reported one. */
  expected: ExpectedReplica | undefined;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
    options.deadlines.add(this);
  }

  get size(): number {
    return this.#arrived.size + this.#returned.size;
  }

  /** Whether an arriving request must queue even if a replica serves. */
  get mustWait(): boolean {
    return this.#isHeld || this.#lacksRoom;
  }

  /** The requests wait because each replica is full. */
  get lacksRoom(): boolean {
    return this.#lacksRoom;
  }

  /**
   * Queues a request with `heldBytes` of its body, or returns why it must be answered at once. `lacksRoom`: it found each
   * replica full.
   */
  enter(entry: QueueEntry, heldBytes: number, lacksRoom: boolean): QueueRefusal | undefined {
    const { limits, tally, deadlines } = this.#options;
    const { now } = deadlines;
    const isReturning = this.#released.delete(entry);
    const isReplicaExpected = !this.#isSetKnown || this.#serving > 0 || limits.fromZero || now - this.#servedAt < recentlyMs;
    entry.giveUpAt ??= now + limits.timeoutMs;
    if (entry.giveUpAt <= now) return isReturning ? 'late' : 'hopeless';
    if (!isReplicaExpected) return 'hopeless';
    if (tally.requests >= limits.maxRequests || tally.bytes + heldBytes > limits.maxBytes) return 'full';
    // The first in the order of arrival that finds no room remains the first.
    if (isReturning && lacksRoom) this.#returned = new Map([[entry, heldBytes], ...this.#returned]);
    else (isReturning ? this.#returned : this.#arrived).set(entry, heldBytes);
    this.#bytes += heldBytes;
    this.#changed();
    if (this.#serving === 0 && !this.#isHeld) {
      this.#isHeld = true;
      this.#options.onHeld();
    }
    if (lacksRoom) void this.#awaitRoom();
    this.deadlineAt = Math.min(this.deadlineAt, now + retryIntervalMs);
    return undefined;
  }

  /** Counts more bytes of a queued request. False when they do not fit; the request must then leave the queue. */
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

  /** Ignores unknown requests. */
  finish(entry: QueueEntry): void {
    this.#remove(entry);
    if (!this.#released.delete(entry)) return;
    this.#window += 1;
    this.#releaseNext();
  }

  /**
   * A new set, of which `serving` serve. An empty first set fails queued requests, unless the service scales from zero.
   */
  replicasChanged(serving: number): void {
    const isFirstSetEmpty = !this.#isSetKnown && serving === 0 && !this.#options.limits.fromZero;
    this.#isSetKnown = true;
    if (this.#serving > 0 && serving === 0) this.#servedAt = this.#options.deadlines.now;
    if (this.#serving === 0) this.#window = 0;
    this.#serving = serving;
    if (serving === 0) this.#endLackOfRoom();
    this.#window = Math.max(this.#window, this.#firstWindow);
    if (isFirstSetEmpty) this.#giveUp(() => true);
    this.#releaseNext();
  }

  onDeadline(): void {
    const { now } = this.#options.deadlines;
    this.#giveUp(({ giveUpAt = now }) => giveUpAt <= now);
    this.#window = this.size === 0 ? this.#released.size + this.#firstWindow : this.#window + this.#firstWindow;
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

  async #awaitRoom(): Promise<void> {
    const { room } = this.#options;
    this.#lacksRoom = true;
    this.#hasFoundFull = true;
    if (room.isAwaited) return;
    await room.next();
    if (!this.#lacksRoom || !this.#releaseNext()) room.passOn();
    else if (this.#lacksRoom) await this.#awaitRoom();
  }

  /**
   * A request that finds no replica enters again; the same turn does not release it again. One that finds each replica
   * full ends the turn. True when any request was released.
   */
  #releaseNext(): boolean {
    // Full replicas need no protection by the window: their limit does that.
    const free = Math.max(this.#window - this.#released.size, this.#lacksRoom ? this.#firstWindow : 0);
    if (this.#serving === 0 || free <= 0 || this.size === 0) return false;
    for (const entry of this.#first(free)) {
      this.#remove(entry);
      this.#released.add(entry);
      this.#hasFoundFull = false;
      entry.tryAgain();
      if (this.#hasFoundFull) break;
    }
    return true;
  }

  #first(most: number): readonly QueueEntry[] {
    const first: QueueEntry[] = [];
    for (const queue of [this.#returned, this.#arrived]) {
      for (const entry of queue.keys()) {
        if (first.length >= most) return first;
        first.push(entry);
      }
    }
    return first;
  }

  #remove(entry: QueueEntry): void {
    const held = this.#returned.get(entry) ?? this.#arrived.get(entry);
    if (held === undefined) return;
    this.#returned.delete(entry);
    this.#arrived.delete(entry);
    this.#bytes -= held;
    this.#changed();
  }

  #endLackOfRoom(): void {
    if (!this.#lacksRoom) return;
    this.#lacksRoom = false;
    this.#options.room.withdraw();
  }

  #changed(): void {
    if (this.size === 0 && this.#serving > 0) this.#isHeld = false;
    if (this.size === 0) this.#endLackOfRoom();
    this.#options.tally.set(this.size, this.#bytes);
  }
}
