import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { ResponseSink } from '../http1/response-parser.ts';

/** The request that a stream to a replica works on. */
export interface ReplicaStreamUser extends ResponseSink {
  /** One read was processed; its events came before. */
  afterRead(): void;
  /** `isRefused`: the replica reports that it has not begun to process the request. */
  streamLost(isRefused?: boolean): void;
  /** After `flush()` returned false: there is room again. */
  replicaDrained(): void;
}

/** One request at one replica: over an HTTP/1.1 connection, or as a stream of an HTTP/2 connection. */
export interface ReplicaStream {
  /** The connection has served requests before, so the replica may have closed it while it was idle. */
  readonly isReused: boolean;
  /** The replica can report that it has not begun to process a request (HTTP/2): then any request may be sent again. */
  readonly mayRefuse: boolean;
  /** Sends the head; the response's events go to `user` from now on. Collected until `flush`, as are the next two. */
  begin(user: ReplicaStreamUser, head: RequestHead, client: ForwardedClient, requestId: string): void;
  /** Sends `bytes[from, to)` of the request's body. The buffer may be overwritten after `flush` has returned. */
  body(bytes: Buffer, from: number, to: number): void;
  /** The request's body has ended; after a 101, the client sends no more. */
  end(trailers: Trailers): void;
  /** Sends the collected bytes. False when the replica is slow: wait for `replicaDrained`. */
  flush(): boolean;
  pause(): void;
  resume(): void;
  /** The response was read to its end: the connection may serve another request if it is reusable. */
  release(response: ResponseHead, isRequestSent: boolean): void;
  /** Cancels the request at once; its user gets no further events. */
  destroy(): void;
}
