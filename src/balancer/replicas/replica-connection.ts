import type { Socket } from 'node:net';
import type { Deadlines, Timed } from '../transport/deadlines.ts';
import { chunkedLength } from '../http1/body-length.ts';
import type { Trailers } from '../http1/chunked-decoder.ts';
import { forwardRequestHead, type ForwardedClient } from '../http1/forward-request.ts';
import { lastChunk } from '../http1/forward-response.ts';
import { defaultHeadLimits } from '../http1/limits.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { ResponseParser } from '../http1/response-parser.ts';
import { HandleTransport } from '../transport/handle-transport.ts';
import { MessageWriter } from '../transport/message-writer.ts';
import type { Transport, TransportUser } from '../transport/transport.ts';
import type { ReplicaStream, ReplicaStreamUser } from './replica-stream.ts';

/** What a connection needs from its pool. */
export interface ReplicaConnectionOwner {
  readonly deadlines: Deadlines;
  keep(connection: ReplicaConnection, response: ResponseHead): void;
  /** The first bytes of the replica came. */
  answered(): void;
  /** The replica closed it while it served no request, or before it answered the next one. */
  closedWhileIdle(connection: ReplicaConnection): void;
  forget(connection: ReplicaConnection): void;
  /** The code threw an unexpected error while it worked on an event of the connection, which is destroyed already. */
  crashed(error: unknown): void;
}

/** One HTTP/1.1 connection to a replica; serves one request at a time. */
export class ReplicaConnection implements ReplicaStream, TransportUser, Timed {
  readonly mayRefuse = false;
  deadlineAt = Number.POSITIVE_INFINITY;
  /** The replica has sent something, so it reads what arrives on this connection. */
  hasAnswered = false;
  /** Requests that it served to their end. */
  served = 0;
  /** Monotonic ms, coarse. */
  idleSince = 0;
  readonly #transport: Transport;
  readonly #owner: ReplicaConnectionOwner;
  readonly #writer: MessageWriter;
  readonly #parser = new ResponseParser(defaultHeadLimits);
  #user: ReplicaStreamUser | undefined;
  #isChunked = false;
  #isAnswering = false;
  #hasExcess = false;
  #isClosed = false;
  /** The transport's value when the current request began. */
  #sendsBefore = 0;

  constructor(socket: Socket, owner: ReplicaConnectionOwner) {
    this.#transport = new HandleTransport(socket);
    this.#owner = owner;
    this.#writer = new MessageWriter(this.#transport);
    owner.deadlines.add(this);
    this.#transport.start(this);
  }

  get isReused(): boolean {
    return this.served > 0;
  }

  begin(user: ReplicaStreamUser, head: RequestHead, client: ForwardedClient, requestId: string): void {
    this.#user = user;
    this.#isChunked = head.bodyLength === chunkedLength;
    this.deadlineAt = Number.POSITIVE_INFINITY;
    this.#sendsBefore = this.#transport.sends;
    this.#parser.begin(head.method, head.isUpgrade, user);
    if (this.#transport.isPaused) this.#transport.resume();
    this.#writer.text(forwardRequestHead(head, client, requestId));
  }

  body(bytes: Buffer, from: number, to: number): void {
    if (this.#isChunked) this.#writer.chunk(bytes, from, to);
    else this.#writer.bytes(bytes, from, to);
  }

  end(trailers: Trailers): void {
    if (this.#isChunked) this.#writer.text(lastChunk(trailers));
    if (!this.#parser.isTunnel) return;
    this.#writer.flush();
    this.#transport.end();
  }

  flush(): boolean {
    return this.#writer.flush();
  }

  release(response: ResponseHead, isRequestSent: boolean): void {
    if (response.isPersistent && this.#parser.isReusable && isRequestSent && !this.#hasExcess) this.#owner.keep(this, response);
    else this.#dismiss(response, isRequestSent);
  }

  #dismiss({ fields }: ResponseHead, isRequestSent: boolean): void {
    // The replica would keep it. A reset frees the local port at once; a close would hold it for a minute (TIME_WAIT).
    if (isRequestSent && !fields.connection.close) this.#transport.reset();
    this.destroy();
  }

  /** Takes the connection back from its request, whose response was read to the end. */
  finish(idleMs: number): void {
    this.#user = undefined;
    this.#isAnswering = false;
    this.served += 1;
    this.idleSince = this.#owner.deadlines.machineNow;
    this.deadlineAt = this.#owner.deadlines.in(idleMs);
    if (this.#transport.isPaused) this.#transport.resume();
  }

  pause(): void {
    this.#transport.pause();
  }

  resume(): void {
    this.#transport.resume();
  }

  /** Closes it at once, in any state; its user gets no further events. */
  destroy(): void {
    this.#user = undefined;
    this.#writer.clear();
    this.#transport.destroy();
    this.#onClose();
  }

  onDeadline(): void {
    this.destroy();
  }

  received(bytes: Buffer): void {
    const user = this.#user;
    // No request asked for these bytes; the next request would get another one's response.
    if (user === undefined) return this.destroy();
    // The bytes do not answer this request, of which none has left yet. Some servers end an idle connection with a 408.
    if (this.#transport.sends === this.#sendsBefore) return this.#lose(user);
    this.#isAnswering = true;
    if (!this.hasAnswered) {
      this.hasAnswered = true;
      this.#owner.answered();
    }
    try {
      this.#hasExcess = this.#parser.feed(bytes, 0) < bytes.length;
      return user.afterRead();
    } catch (error) {
      return this.#crash(error);
    }
  }

  ended(): void {
    this.#guarded(() => {
      const user = this.#user;
      this.#recordIdleEnd();
      if (user === undefined) return this.destroy();
      this.#hasExcess = false;
      return this.#parser.finish() ? user.afterRead() : this.#lose(user);
    });
  }

  drained(): void {
    this.#guarded(() => this.#user?.replicaDrained());
  }

  closed(): void {
    if (this.#isClosed) return;
    this.#guarded(() => {
      this.#recordIdleEnd();
      this.#onClose();
    });
  }

  /** Reports the end of a connection that served before and has not begun to answer anything since. */
  #recordIdleEnd(): void {
    if (this.isReused && !this.#isAnswering) this.#owner.closedWhileIdle(this);
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#owner.deadlines.delete(this);
    this.#owner.forget(this);
    if (this.#user !== undefined) this.#lose(this.#user);
  }

  #lose(user: ReplicaStreamUser): void {
    this.destroy();
    user.streamLost();
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#crash(error);
    }
  }

  /** An unexpected error in the work on one connection must not end the others. */
  #crash(error: unknown): void {
    const user = this.#user;
    this.destroy();
    this.#owner.crashed(error);
    user?.streamLost();
  }
}
