import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { ResponseHead } from '../http1/response-head.ts';

/** Writes one response to a client, in the client's protocol. Collects all output until `flush`. */
export interface Reply {
  interim(head: ResponseHead): void;
  /** After a 101, both directions carry plain bytes. `ownLines`: the balancer's fields, `Name: value` with CRLF. */
  head(head: ResponseHead, requestId: string, ownLines: string): void;
  /** Writes `bytes[from, to)` of the body. The buffer may be overwritten after `flush` has returned. */
  body(bytes: Buffer, from: number, to: number): void;
  end(trailers: Trailers): void;
  /** Replaces the collected output by a whole response of the balancer itself. Only valid while nothing was flushed. */
  own(response: BalancerResponse, requestId: string): void;
  /** Sends the collected output. False when the client is slow: `Exchange.clientDrained` follows. */
  flush(): boolean;
}

/** What an exchange needs from the connection, or HTTP/2 stream, of its request. */
export interface ExchangeClient {
  readonly forwarded: ForwardedClient;
  readonly protocol: 'h1' | 'h2';
  readonly reply: Reply;
  /** When the exchange must have made progress, monotonic ms; `Exchange.onDeadline` is called after it. */
  deadlineAt: number;
  pauseReading(): void;
  resumeReading(): void;
  /** The response was written to its end: the exchange sends nothing more. */
  exchangeDone(): void;
  /** The response broke off after part of it was sent. The client must not take that for a proper end. */
  exchangeBroken(): void;
}
