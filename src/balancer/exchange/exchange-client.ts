import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import type { ResponseHead } from '../http1/response-head.ts';

/** Writes one response to a client, in the protocol that the client speaks. What is written is collected until `flush`. */
export interface Reply {
  /** 100 or 103, ahead of the response itself. */
  interim(head: ResponseHead): void;
  /** The response's head; a 101 turns what follows in both directions into plain bytes. `ownLines`: fields of ours, `Name: value` with CRLF. */
  head(head: ResponseHead, requestId: string, ownLines: string): void;
  /** `bytes[from, to)` of the body. The buffer may be written over after `flush` has returned. */
  body(bytes: Buffer, from: number, to: number): void;
  /** The body has ended as it should. */
  end(trailers: Trailers): void;
  /** A whole response of the balancer itself; only as long as nothing was flushed, and in place of what was collected. */
  own(response: OwnResponse, requestId: string): void;
  /** Sends what was collected. False when the client is slow: `Exchange.clientDrained` is called once it takes bytes again. */
  flush(): boolean;
}

/** What an exchange needs from the connection, or HTTP/2 stream, that its request came on. */
export interface ExchangeClient {
  readonly forwarded: ForwardedClient;
  readonly protocol: 'h1' | 'h2';
  readonly reply: Reply;
  /** When the exchange must have moved on, monotonic ms; `Exchange.onDeadline` is called after it. */
  deadlineAt: number;
  /** Takes no more of the request until `resumeReading`. */
  pauseReading(): void;
  resumeReading(): void;
  /** The response was written to its end: nothing more comes from the exchange. */
  exchangeDone(): void;
  /** The response broke off after part of it was sent: the client must be able to tell that from its proper end. */
  exchangeBroken(): void;
}
