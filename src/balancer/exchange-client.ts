import type { ForwardedClient } from './http1/forward-request.ts';
import type { MessageWriter } from './message-writer.ts';

/** What an exchange needs from the connection that its request came on, whatever protocol that speaks. */
export interface ExchangeClient {
  readonly forwarded: ForwardedClient;
  readonly writer: MessageWriter;
  /** When the exchange must have moved on, monotonic ms; `Exchange.onDeadline` is called after it. */
  deadlineAt: number;
  /** Takes no more of the request until `resumeReading`. */
  pauseReading(): void;
  resumeReading(): void;
  /** The response was handed over. `isPersistent`: another request may follow. */
  exchangeDone(isPersistent: boolean): void;
  /** The response broke off: the connection ends in a way that cannot be taken for the proper end of the message. */
  exchangeBroken(): void;
}
