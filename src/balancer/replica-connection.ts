import type { Socket } from 'node:net';
import type { Deadlines, Timed } from './deadlines.ts';
import { chunkedLength } from './http1/body-length.ts';
import type { Trailers } from './http1/chunked-decoder.ts';
import { forwardRequestHead, type ForwardedClient } from './http1/forward-request.ts';
import { lastChunk } from './http1/forward-response.ts';
import { defaultHeadLimits } from './http1/limits.ts';
import type { RequestHead } from './http1/request-head.ts';
import type { ResponseHead } from './http1/response-head.ts';
import { ResponseParser } from './http1/response-parser.ts';
import { MessageWriter } from './message-writer.ts';
import type { ReplicaStream, ReplicaStreamUser } from './replica-stream.ts';

/** What a connection needs from the pool that it belongs to. */
export interface ReplicaConnectionOwner {
  readonly deadlines: Deadlines;
  /** Keeps a connection whose response was read to the end, for the next request. */
  give(connection: ReplicaConnection, response: ResponseHead): void;
  /** The connection is closed. */
  forget(connection: ReplicaConnection): void;
  /** Something unexpected was thrown while working on an event of it; it is destroyed already. */
  crashed(error: unknown): void;
}

/** One HTTP/1.1 connection to a replica; serves one request at a time. */
export class ReplicaConnection implements ReplicaStream, Timed {
  deadlineAt = Number.POSITIVE_INFINITY;
  /** Requests that it served to their end. */
  served = 0;
  /** Monotonic ms, coarse. */
  idleSince = 0;
  readonly #socket: Socket;
  readonly #owner: ReplicaConnectionOwner;
  readonly #writer: MessageWriter;
  readonly #parser = new ResponseParser(defaultHeadLimits);
  #user: ReplicaStreamUser | undefined;
  #isChunked = false;
  /** Bytes followed the response that nobody asked for. */
  #hasExcess = false;

  constructor(socket: Socket, owner: ReplicaConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.#writer = new MessageWriter(socket);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#guarded(() => this.#onEnd()));
    socket.on('drain', () => this.#guarded(() => this.#user?.replicaDrained()));
    // What is wrong does not matter: `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#guarded(() => this.#onClose()));
    owner.deadlines.add(this);
  }

  get isReused(): boolean {
    return this.served > 0;
  }

  begin(user: ReplicaStreamUser, head: RequestHead, client: ForwardedClient, requestId: string): void {
    this.#user = user;
    this.#isChunked = head.bodyLength === chunkedLength;
    this.deadlineAt = Number.POSITIVE_INFINITY;
    this.#parser.begin(head.method, head.isUpgrade, user);
    if (this.#socket.isPaused()) this.#socket.resume();
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
    this.#socket.end();
  }

  flush(): boolean {
    return this.#writer.flush();
  }

  release(response: ResponseHead, isRequestSent: boolean): void {
    if (response.isPersistent && isRequestSent && !this.#hasExcess) this.#owner.give(this, response);
    else this.destroy();
  }

  /** Takes the connection back from its request, whose response was read to the end. */
  finish(idleMs: number): void {
    this.#user = undefined;
    this.served += 1;
    this.idleSince = this.#owner.deadlines.now;
    this.deadlineAt = this.#owner.deadlines.in(idleMs);
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes it at once, whatever it is doing; its user hears nothing more of it. */
  destroy(): void {
    this.#user = undefined;
    this.#writer.clear();
    this.#socket.destroy();
    this.#onClose();
  }

  onDeadline(): void {
    this.destroy();
  }

  #onData(chunk: Buffer): void {
    const user = this.#user;
    // Nobody asked for these bytes; passing them to the next request would answer it with another one's response.
    if (user === undefined) return this.destroy();
    // Not through `#guarded`: this is the hot path.
    try {
      this.#hasExcess = this.#parser.feed(chunk, 0) < chunk.length;
      return user.afterRead();
    } catch (error) {
      return this.#crash(error);
    }
  }

  #onEnd(): void {
    const user = this.#user;
    if (user === undefined) return this.destroy();
    this.#hasExcess = false;
    if (this.#parser.finish()) return user.afterRead();
    return this.#lose(user);
  }

  #onClose(): void {
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
