import { connect, type ClientHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Deadlines, Timed } from '../transport/deadlines.ts';
import { Http2ReplicaStream, type Http2StreamOwner } from './http2-replica-stream.ts';
import { clientOptions, connectionWindowBytes } from './session-options.ts';

/** A session without requests is closed after this time. */
const idleMs = 60_000;
/** The most concurrent streams that the balancer opens, however many a replica allows. */
const maxStreams = 256;

/** What a session needs from the sessions of its replica. */
export interface Http2SessionOwner {
  readonly deadlines: Deadlines;
  /** The session takes no more requests. */
  forget(session: Http2ReplicaSession): void;
  closed(): void;
  crashed(error: unknown): void;
}

/** One HTTP/2 connection to a replica, for many requests at a time. */
export class Http2ReplicaSession implements Http2StreamOwner, Timed {
  readonly session: ClientHttp2Session;
  deadlineAt = Number.POSITIVE_INFINITY;
  lastStreamId: number | undefined;
  readonly #socket: Socket;
  readonly #owner: Http2SessionOwner;
  readonly #streams = new Set<Http2ReplicaStream>();
  /** Called once with whether the replica speaks HTTP/2. */
  #onOpened: ((isOpen: boolean) => void) | undefined;
  #hasServed = false;
  #isClosing = false;
  /** Bytes read when an unanswered request was cancelled; the session takes no requests until more bytes come. */
  #doubtedAt = -1;

  /** Uses a connected socket; `onOpened` is called once, after the replica's SETTINGS or the end of the connection. */
  constructor(socket: Socket, owner: Http2SessionOwner, onOpened: (isOpen: boolean) => void) {
    this.#socket = socket;
    this.#owner = owner;
    this.#onOpened = onOpened;
    this.session = connect('http://replica', { ...clientOptions, createConnection: () => socket });
    this.session.once('connect', () => this.#guarded(() => this.session.setLocalWindowSize(connectionWindowBytes)));
    this.session.once('remoteSettings', () => this.#guarded(() => this.#opened(true)));
    this.session.on('goaway', (_code, lastStreamId: number) => {
      this.lastStreamId = lastStreamId;
      this.#retire();
    });
    // The cause does not matter: `close` follows.
    this.session.on('error', () => undefined);
    this.session.on('close', () => this.#guarded(() => this.#onClose()));
    owner.deadlines.add(this);
    // `dial` returned a socket that has never read. Node takes over only reads that a socket has begun.
    socket.read(0);
  }

  get hasRoom(): boolean {
    if (this.#isClosing || this.session.closed || this.session.destroyed || this.#socket.bytesRead === this.#doubtedAt) return false;
    return this.#streams.size < Math.min(maxStreams, this.session.remoteSettings.maxConcurrentStreams ?? maxStreams);
  }

  get isBusy(): boolean {
    return this.#streams.size > 0;
  }

  /** Call it only while `hasRoom`. */
  open(): Http2ReplicaStream {
    const stream = new Http2ReplicaStream(this, this.#hasServed);
    this.#streams.add(stream);
    this.deadlineAt = Number.POSITIVE_INFINITY;
    return stream;
  }

  /** Takes no more requests; closes after the last response. */
  close(): void {
    this.#retire();
    this.session.close();
  }

  destroy(): void {
    this.session.destroy();
  }

  onDeadline(): void {
    this.deadlineAt = Number.POSITIVE_INFINITY;
    this.close();
  }

  // ---- Http2StreamOwner

  givenUp(wasSilent: boolean): void {
    if (wasSilent) this.#doubtedAt = this.#socket.bytesRead;
  }

  served(): void {
    this.#hasServed = true;
  }

  forget(stream: Http2ReplicaStream): void {
    this.#streams.delete(stream);
    if (this.#streams.size === 0) this.deadlineAt = this.#owner.deadlines.in(idleMs);
  }

  crashed(error: unknown): void {
    this.#owner.crashed(error);
  }

  #retire(): void {
    this.#isClosing = true;
    this.#owner.forget(this);
  }

  #opened(isOpen: boolean): void {
    const notify = this.#onOpened;
    this.#onOpened = undefined;
    if (isOpen) this.deadlineAt = this.#owner.deadlines.in(idleMs);
    notify?.(isOpen);
  }

  #onClose(): void {
    this.#owner.deadlines.delete(this);
    this.#owner.closed();
    this.#retire();
    this.#opened(false);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#owner.crashed(error);
      this.session.destroy();
    }
  }
}
