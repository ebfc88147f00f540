import type { AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import * as own from './own-responses.ts';
import type { Waiting } from './waiting-room.ts';

/** What becomes of a request that waits. */
export interface StayListener {
  /** A replica may be there now. `otherwise`: the answer when there is none. */
  lookAgain(otherwise: OwnResponse): void;
  /** It has waited for as long as it may. */
  waitedInVain(answer: OwnResponse): void;
}

/** The waiting of one request for a replica, perhaps several times. */
export class Stay implements Waiting {
  giveUpAt: number | undefined;
  readonly #context: BalancerContext;
  readonly #record: AccessRecord;
  readonly #listener: StayListener;
  /** Monotonic ms, while it waits. */
  #since: number | undefined;
  #otherwise: OwnResponse = own.internalError;

  constructor(context: BalancerContext, record: AccessRecord, listener: StayListener) {
    this.#context = context;
    this.#record = record;
    this.#listener = listener;
  }

  /** Begins to wait; gives the answer to the request when it must not. `otherwise`: the answer when waiting is in vain. */
  enter(otherwise: OwnResponse, heldBytes: number): OwnResponse | undefined {
    const { waitingRoom, config, clock } = this.#context;
    this.#otherwise = otherwise;
    const refusal = waitingRoom.enter(this, heldBytes);
    if (refusal !== undefined) return own.notQueued(config, refusal, otherwise);
    this.#since ??= clock.monotonic();
    return undefined;
  }

  /** More of its body was read; false when that is more than may wait. */
  addBytes(bytes: number): boolean {
    return this.#context.waitingRoom.addBytes(this, bytes);
  }

  /** It has a replica, or needs none any more: the time that it waited goes on record. */
  pause(): void {
    if (this.#since === undefined) return;
    this.#record.queuedMs += this.#context.clock.monotonic() - this.#since;
    this.#since = undefined;
  }

  /** It will not wait again. */
  end(): void {
    this.pause();
    this.#context.waitingRoom.leave(this);
  }

  tryAgain(): void {
    this.#listener.lookAgain(this.#otherwise);
  }

  giveUp(): void {
    this.#listener.waitedInVain(own.waitedInVain(this.#context.config, this.#otherwise));
  }
}
