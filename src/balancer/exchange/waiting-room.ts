import type { RequestQueueLimits } from '../../domain/balancer-link.ts';
import type { Deadlines, Timed } from '../transport/deadlines.ts';

/** A request that waits for a replica, perhaps several times. Each time exactly one of the two is called, unless it leaves before. */
export interface Waiting {
  /** Monotonic ms, set when it first enters: looking in vain does not prolong the wait. */
  giveUpAt: number | undefined;
  /** A replica may be there now. */
  tryAgain(): void;
  /** It has waited for as long as it may. */
  giveUp(): void;
}

/** Why a request cannot wait: there is no room, no hope that a replica comes in time, or it has waited for long enough. */
export type QueueRefusal = 'full' | 'hopeless' | 'late';

/** What waits in all threads together. */
export interface QueueTally {
  /** What waits in this thread: requests, and bytes of their bodies. */
  set(requests: number, bytes: number): void;
  /** What waits in all of them. */
  readonly requests: number;
  readonly bytes: number;
}

/** What a waiting room needs. */
export interface WaitingRoomOptions {
  readonly deadlines: Deadlines;
  readonly limits: RequestQueueLimits;
  readonly tally: QueueTally;
  /** Rooms like this one: each lets its share through. */
  readonly threads: number;
}

/** A service that had no replica for so long does not come back within moments: its clients are told at once, unless it wakes up for them. */
const recentlyMs = 30_000;
/** How often a waiting request looks again though no news came, ms: a replica that refused may have recovered. */
const lookEveryMs = 300;
/** How many requests may be on their way from here to one replica at first, in all threads. */
const firstWindow = 16;

/**
 * Requests that met no replica that could take them: they wait for the next one instead of failing. First come, first served, and those who come
 * while others wait for the first replica wait behind them.
 *
 * A replica that has just come up is not run over: the number of requests that have left here and heard nothing yet is limited by a window, which
 * opens by one with each that is answered, as TCP's does (RFC 5681, "slow start"), and by its first size with each look, for replicas that take
 * minutes for an answer.
 */
export class WaitingRoom implements Timed {
  readonly #options: WaitingRoomOptions;
  /** In order of arrival, with the bytes that are held for each. */
  readonly #waiting = new Map<Waiting, number>();
  /** Those who looked in vain: they come first. */
  readonly #returned = new Map<Waiting, number>();
  /** Let through, and not answered yet. */
  readonly #released = new Set<Waiting>();
  #bytes = 0;
  #window = 0;
  #servedAt = Number.NEGATIVE_INFINITY;
  /** Somebody has said which replicas there are; until then nobody knows that there is no hope. */
  #isTold = false;
  #serving = 0;
  /** Somebody came while no replica served, and not all of those who wait since have been let through. */
  #isHeld = false;
  deadlineAt = Number.POSITIVE_INFINITY;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
    options.deadlines.add(this);
  }

  /** Requests that wait now, in this thread. */
  get size(): number {
    return this.#waiting.size + this.#returned.size;
  }

  /** Whether a request that arrives must wait behind others, even if a replica serves. */
  get mustWait(): boolean {
    return this.#isHeld;
  }

  /** Lets a request wait, of whose body so many bytes are held; or says why it must be answered at once. */
  enter(waiting: Waiting, heldBytes: number): QueueRefusal | undefined {
    const { limits, tally, deadlines } = this.#options;
    const { now } = deadlines;
    const isReturning = this.#released.delete(waiting);
    const isHopeful = !this.#isTold || this.#serving > 0 || limits.fromZero || now - this.#servedAt < recentlyMs;
    waiting.giveUpAt ??= now + limits.timeoutMs;
    if (waiting.giveUpAt <= now) return isReturning ? 'late' : 'hopeless';
    if (!isHopeful) return 'hopeless';
    if (tally.requests >= limits.maxRequests || tally.bytes + heldBytes > limits.maxBytes) return 'full';
    (isReturning ? this.#returned : this.#waiting).set(waiting, heldBytes);
    this.#bytes += heldBytes;
    if (this.#serving === 0) this.#isHeld = true;
    this.#changed();
    this.deadlineAt = Math.min(this.deadlineAt, now + lookEveryMs);
    return undefined;
  }

  /** More of the body of a request that waits was read. False when there is no room for it; then it must leave. */
  addBytes(waiting: Waiting, bytes: number): boolean {
    const queue = this.#returned.has(waiting) ? this.#returned : this.#waiting;
    const held = queue.get(waiting);
    if (held === undefined) return true;
    if (this.#options.tally.bytes + bytes > this.#options.limits.maxBytes) return false;
    queue.set(waiting, held + bytes);
    this.#bytes += bytes;
    this.#changed();
    return true;
  }

  /** It waits no more: it was answered, or its client left. Does nothing when it is not known. */
  leave(waiting: Waiting): void {
    this.#remove(waiting);
    if (!this.#released.delete(waiting)) return;
    this.#window += 1;
    this.#letThrough();
  }

  /** A new set of replicas is in force, of which so many serve. When the first one shows that there is no hope, those who wait are told at once. */
  replicasChanged(serving: number): void {
    const isVain = !this.#isTold && serving === 0 && !this.#options.limits.fromZero;
    this.#isTold = true;
    if (this.#serving > 0 && serving === 0) this.#servedAt = this.#options.deadlines.now;
    if (this.#serving === 0) this.#window = 0;
    this.#serving = serving;
    this.#window = Math.max(this.#window, this.#firstWindow);
    if (isVain) this.#giveUp(() => true);
    this.#letThrough();
  }

  onDeadline(): void {
    const { now } = this.#options.deadlines;
    this.#giveUp(({ giveUpAt = now }) => giveUpAt <= now);
    this.#window = this.size === 0 ? this.#firstWindow : this.#window + this.#firstWindow;
    this.#letThrough();
    this.deadlineAt = this.size === 0 ? Number.POSITIVE_INFINITY : now + lookEveryMs;
  }

  get #firstWindow(): number {
    return Math.ceil((firstWindow * this.#serving) / this.#options.threads);
  }

  #giveUp(isOver: (waiting: Waiting) => boolean): void {
    for (const waiting of [...this.#returned.keys(), ...this.#waiting.keys()]) {
      if (!isOver(waiting)) continue;
      this.#remove(waiting);
      waiting.giveUp();
    }
  }

  /** Those who find nothing enter again, and are not asked again in the same turn. */
  #letThrough(): void {
    const free = this.#window - this.#released.size;
    if (this.#serving === 0 || free <= 0 || this.size === 0) return;
    const next = [...this.#returned.keys(), ...this.#waiting.keys()].slice(0, free);
    for (const waiting of next) {
      this.#remove(waiting);
      this.#released.add(waiting);
      waiting.tryAgain();
    }
  }

  #remove(waiting: Waiting): void {
    const held = this.#returned.get(waiting) ?? this.#waiting.get(waiting);
    if (held === undefined) return;
    this.#returned.delete(waiting);
    this.#waiting.delete(waiting);
    this.#bytes -= held;
    this.#changed();
  }

  #changed(): void {
    if (this.size === 0 && this.#serving > 0) this.#isHeld = false;
    this.#options.tally.set(this.size, this.#bytes);
  }
}
