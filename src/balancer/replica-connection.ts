import type { Socket } from 'node:net';
import type { Deadlines, Timed } from './deadlines.ts';
import { defaultHeadLimits } from './http1/limits.ts';
import { ResponseParser, type ResponseSink } from './http1/response-parser.ts';
import { MessageWriter } from './message-writer.ts';

/** The request that a connection works on. */
export interface ReplicaConnectionUser extends ResponseSink {
  /** One read was worked on. `hasExcess`: bytes followed the response that nobody asked for. */
  afterRead(hasExcess: boolean): void;
  /** The connection ended before the response did. */
  connectionLost(): void;
  /** After `writer.flush()` gave false: there is room again. */
  replicaDrained(): void;
}

/** What a connection needs from the pool that it belongs to. */
export interface ReplicaConnectionOwner {
  readonly deadlines: Deadlines;
  /** The connection is closed. */
  forget(connection: ReplicaConnection): void;
  /** Something unexpected was thrown while working on an event of it; it is destroyed already. */
  crashed(error: unknown): void;
}

/** One connection to a replica; serves one request at a time. */
export class ReplicaConnection implements Timed {
  readonly writer: MessageWriter;
  deadlineAt = Number.POSITIVE_INFINITY;
  /** Requests that it served to their end. */
  served = 0;
  /** Monotonic ms, coarse. */
  idleSince = 0;
  readonly #socket: Socket;
  readonly #owner: ReplicaConnectionOwner;
  readonly #parser = new ResponseParser(defaultHeadLimits);
  #user: ReplicaConnectionUser | undefined;

  constructor(socket: Socket, owner: ReplicaConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    this.writer = new MessageWriter(socket);
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

  /** Gives the connection to a request, whose method tells how its response is framed. */
  begin(user: ReplicaConnectionUser, method: string): void {
    this.#user = user;
    this.deadlineAt = Number.POSITIVE_INFINITY;
    this.#parser.begin(method, user);
    if (this.#socket.isPaused()) this.#socket.resume();
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
    this.writer.clear();
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
      const used = this.#parser.feed(chunk, 0);
      return user.afterRead(used < chunk.length);
    } catch (error) {
      return this.#crash(error);
    }
  }

  #onEnd(): void {
    const user = this.#user;
    if (user === undefined) return this.destroy();
    if (this.#parser.finish()) return user.afterRead(false);
    return this.#lose(user);
  }

  #onClose(): void {
    this.#owner.deadlines.delete(this);
    this.#owner.forget(this);
    if (this.#user !== undefined) this.#lose(this.#user);
  }

  #lose(user: ReplicaConnectionUser): void {
    this.destroy();
    user.connectionLost();
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
    user?.connectionLost();
  }
}
