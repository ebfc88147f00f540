import type { AccessRecord } from '../access-log/access-record.ts';
import type { BalancerContext } from './balancer-context.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import * as own from './balancer-responses.ts';
import type { QueueEntry } from './request-queue.ts';

/** What happens to a request in the queue. */
export interface QueuedRequestListener {
  /** A replica may be available now. `otherwise`: the answer when none is. */
  onRetry(otherwise: BalancerResponse): void;
  /** The request has waited for the maximum time. */
  onQueueTimeout(answer: BalancerResponse): void;
}

/** The time of one request in the queue, which it may enter several times. */
export class QueuedRequest implements QueueEntry {
  giveUpAt: number | undefined;
  readonly #context: BalancerContext;
  readonly #record: AccessRecord;
  readonly #listener: QueuedRequestListener;
  /** Monotonic ms, while it waits. */
  #since: number | undefined;
  #otherwise: BalancerResponse = own.internalError;

  constructor(context: BalancerContext, record: AccessRecord, listener: QueuedRequestListener) {
    this.#context = context;
    this.#record = record;
    this.#listener = listener;
  }

  /**
   * Begins to wait; returns the answer to the request when it must not wait. `otherwise`: the answer when no replica is
   * expected.
   */
  enter(otherwise: BalancerResponse, heldBytes: number): BalancerResponse | undefined {
    const { requestQueue, config, clock } = this.#context;
    this.#otherwise = otherwise;
    const refusal = requestQueue.enter(this, heldBytes);
    if (refusal !== undefined) return own.queueRefusalResponse(config, refusal, otherwise);
    this.#since ??= clock.monotonic();
    return undefined;
  }

  /** More of its body was read; false when the queue has no room for it. */
  addBytes(bytes: number): boolean {
    return this.#context.requestQueue.addBytes(this, bytes);
  }

  /** The request has a replica, or needs none any more: records the time that it waited. */
  pause(): void {
    if (this.#since === undefined) return;
    this.#record.queuedMs += this.#context.clock.monotonic() - this.#since;
    this.#since = undefined;
  }

  /** The request will not wait again. */
  end(): void {
    this.pause();
    this.#context.requestQueue.finish(this);
  }

  tryAgain(): void {
    this.#listener.onRetry(this.#otherwise);
  }

  giveUp(): void {
    this.#listener.onQueueTimeout(own.queueTimeout(this.#context.config, this.#otherwise));
  }
}
