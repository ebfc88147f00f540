import type { Trailers } from '../http1/chunked-decoder.ts';
import type { ForwardedClient } from '../http1/forward-request.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { ResponseSink } from '../http1/response-parser.ts';

/** The request that a stream to a replica works on. */
export interface ReplicaStreamUser extends ResponseSink {
  /** One read was worked on: its events came before. */
  afterRead(): void;
  /** The stream ended before the response did. `isRefused`: the replica says that it has not begun to work on the request, as HTTP/2 can. */
  streamLost(isRefused?: boolean): void;
  /** After `flush()` gave false: there is room again. */
  replicaDrained(): void;
}

/** One request at one replica, whatever protocol the replica speaks: an HTTP/1.1 connection, or one stream of an HTTP/2 connection. */
export interface ReplicaStream {
  /** Whether the connection had served requests before, so that the replica may have closed it while it was idle. */
  readonly isReused: boolean;
  /** Whether the replica can say that it has not begun to work on a request (HTTP/2), so that any request may be sent again. */
  readonly mayRefuse: boolean;
  /** Sends the head; what comes back goes to `user` from now on. Collected until `flush`, as are the next two. */
  begin(user: ReplicaStreamUser, head: RequestHead, client: ForwardedClient, requestId: string): void;
  /** `bytes[from, to)` of the request's body. The buffer may be written over after `flush` has returned. */
  body(bytes: Buffer, from: number, to: number): void;
  /** The request's body has ended; after a 101, the client sends no more. */
  end(trailers: Trailers): void;
  /** Sends what was collected. False when the replica is slow: wait for `replicaDrained`. */
  flush(): boolean;
  /** Takes no more of the response until `resume`. */
  pause(): void;
  resume(): void;
  /** The response was read to its end: the connection may serve another request when it is fit for that. */
  release(response: ResponseHead, isRequestSent: boolean): void;
  /** Gives the request up at once; its user hears nothing more. */
  destroy(): void;
}
