import type { Socket } from 'node:net';
import { DialError, type CancelDial } from '../../shared/system/dial.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import { dialWithinBudget, type ReplicaServices } from '../replicas/replica-pool.ts';
import { Http2ReplicaSession, type Http2SessionOwner } from './http2-replica-session.ts';
import type { Http2ReplicaStream } from './http2-replica-stream.ts';

/** Limit for a replica's SETTINGS, which an HTTP/2 replica sends at once. */
const settingsTimeoutMs = 3_000;

/** Gets a stream, or the error: `EPROTO` when the replica does not speak HTTP/2. */
type OnStream = (error: DialError | undefined, stream: Http2ReplicaStream | undefined) => void;

/** A session that is being opened, and the requests that wait for it. */
interface Opening {
  readonly waiting: Set<Waiter>;
  cancel: CancelDial;
}

interface Waiter {
  readonly done: OnStream;
  opening: Opening;
}

/** The HTTP/2 connections to one replica. One usually suffices; another is opened when all are full. */
export class Http2Sessions implements Http2SessionOwner {
  readonly deadlines: Deadlines;
  readonly #address: ReplicaAddress;
  readonly #services: ReplicaServices;
  readonly #sessions: Http2ReplicaSession[] = [];
  #opening: Opening | undefined;
  #isClosed = false;

  constructor(address: ReplicaAddress, services: ReplicaServices) {
    this.#address = address;
    this.#services = services;
    this.deadlines = services.deadlines;
  }

  /**
   * A stream of a session that has room. Any request may use an idle session, unlike an idle HTTP/1.1 connection: a
   * replica that closes it reports the last request that it processed.
   */
  take(): Http2ReplicaStream | undefined {
    return this.#sessions.find((session) => session.hasRoom)?.open();
  }

  /** Opens a new session, or waits for a session that is already opening; calls `done` later. */
  dial(done: OnStream): CancelDial {
    this.#opening ??= this.#open();
    const waiter: Waiter = { done, opening: this.#opening };
    waiter.opening.waiting.add(waiter);
    return () => {
      const { opening } = waiter;
      opening.waiting.delete(waiter);
      if (opening.waiting.size > 0 || this.#opening !== opening) return;
      this.#opening = undefined;
      opening.cancel();
    };
  }

  closeIdle(): boolean {
    const idle = this.#sessions.find(({ isBusy }) => !isBusy);
    idle?.destroy();
    if (idle !== undefined) this.forget(idle);
    return idle !== undefined;
  }

  close(): void {
    this.#isClosed = true;
    for (const session of this.#sessions.slice()) session.close();
  }

  reopen(): void {
    this.#isClosed = false;
  }

  // ---- Http2SessionOwner

  forget(session: Http2ReplicaSession): void {
    const index = this.#sessions.indexOf(session);
    if (index >= 0) this.#sessions.splice(index, 1);
  }

  closed(): void {
    this.#services.metrics.replicaConnectionClosed();
    this.#services.files.closeReplicaConnection();
  }

  crashed(error: unknown): void {
    this.#services.crashed(error);
  }

  #open(): Opening {
    const opening: Opening = { waiting: new Set(), cancel: () => undefined };
    const onDialled = (error: DialError | undefined, socket: Socket | undefined): void => {
      if (socket === undefined) this.#opened(opening, undefined, error);
      else this.#greet(opening, socket);
    };
    opening.cancel = dialWithinBudget(this.#address, this.#services, onDialled);
    return opening;
  }

  /** Until its SETTINGS arrive, the replica has no request that it could process. */
  #greet(opening: Opening, socket: Socket): void {
    this.#services.metrics.replicaConnectionOpened();
    const session = new Http2ReplicaSession(socket, this, (isOpen) => {
      cancelTimer();
      if (isOpen) this.#opened(opening, session, undefined);
      else this.#opened(opening, undefined, new DialError('EPROTO', 'The replica does not speak HTTP/2 without TLS'));
    });
    const cancelTimer = this.#services.clock.after(settingsTimeoutMs, () => session.destroy());
    opening.cancel = () => {
      cancelTimer();
      session.destroy();
    };
  }

  #opened(opening: Opening, session: Http2ReplicaSession | undefined, error: DialError | undefined): void {
    if (this.#opening === opening) this.#opening = undefined;
    if (session !== undefined) this.#sessions.push(session);
    // A request that was cancelled meanwhile is no longer in the set.
    for (const waiter of opening.waiting) this.#settle(waiter, session, error);
    if (this.#isClosed) session?.close();
  }

  #settle(waiter: Waiter, session: Http2ReplicaSession | undefined, error: DialError | undefined): void {
    const { done, opening } = waiter;
    opening.waiting.delete(waiter);
    try {
      if (session?.hasRoom === true) done(undefined, session.open());
      else if (session?.isBusy === true) this.#waitAgain(waiter);
      else done(error ?? new DialError('EPROTO', 'The replica takes no request over HTTP/2'), undefined);
    } catch (unexpected) {
      this.#services.crashed(unexpected);
    }
  }

  /** More requests wait than the replica takes over one connection. */
  #waitAgain(waiter: Waiter): void {
    this.#opening ??= this.#open();
    waiter.opening = this.#opening;
    waiter.opening.waiting.add(waiter);
  }
}
