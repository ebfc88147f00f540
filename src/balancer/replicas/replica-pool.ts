import type { Socket } from 'node:net';
import type { ReplicaProtocol } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import { dial, type CancelDial, type DialError } from '../../shared/dial.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import { keepAliveSeconds, type ResponseHead } from '../http1/response-head.ts';
import { IdleTrust } from './idle-trust.ts';
import type { ThreadMetrics } from '../metrics/thread-metrics.ts';
import { ReplicaConnection, type ReplicaConnectionOwner } from './replica-connection.ts';

/** Below the 5 s after which common servers (Node, uvicorn) close an idle connection. */
const defaultIdleMs = 4_000;
/** However long a replica says: what lies between may forget a connection on which nothing moves. */
const maxIdleMs = 60_000;
/** A replica that says N seconds may count from an earlier moment than we do. */
const keepAliveMarginMs = 1_000;
/** However soon a replica says that it closes: without any reuse, each request would cost a connect. */
const minIdleMs = 200;
/** For one replica and thread: more were in use at once than will soon be again. */
const maxIdleConnections = 1_024;
/** Until a connection is made, ms: a lost SYN is sent again after 1 s and after 3 s, so there are three tries in it (RFC 6298). */
export const connectTimeoutMs = 5_000;

/** What a pool needs from the process. */
export interface PoolServices {
  /** What the replicas speak. */
  readonly protocol: ReplicaProtocol;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly metrics: ThreadMetrics;
  /** An unexpected error in the work on a connection. */
  readonly crashed: (error: unknown) => void;
}

/** The connections to one replica that are free for the next request. */
export class ReplicaPool implements ReplicaConnectionOwner {
  readonly deadlines: Deadlines;
  readonly #address: ReplicaAddress;
  readonly #services: PoolServices;
  /** The most recently used is last. */
  readonly #idle: ReplicaConnection[] = [];
  readonly #trust = new IdleTrust();
  #isClosed = false;

  constructor(address: ReplicaAddress, services: PoolServices) {
    this.#address = address;
    this.#services = services;
    this.deadlines = services.deadlines;
  }

  /** The connection that was idle for the shortest time. `mayRunTwice`: what is sent over it does no harm when it has to be sent again. */
  take(mayRunTwice: boolean): ReplicaConnection | undefined {
    if (mayRunTwice) return this.#idle.pop();
    const { machineNow } = this.deadlines;
    const [oldest] = this.#idle;
    const newest = this.#idle.at(-1);
    if (oldest === undefined || newest === undefined) return undefined;
    this.#trust.noteAlive(machineNow, machineNow - oldest.idleSince);
    // By the clock itself: when this process has just stood still, the replica may have closed what the last sweep knows as used a moment ago.
    return this.#trust.allows(this.#services.clock.monotonic() - newest.idleSince) ? this.#idle.pop() : undefined;
  }

  /** Opens a new connection; `done` comes later. */
  dial(done: (error: DialError | undefined, connection: ReplicaConnection | undefined) => void): CancelDial {
    const onDialled = (error: DialError | undefined, socket: Socket | undefined): void => {
      try {
        if (socket !== undefined) this.#services.metrics.replicaConnectionOpened();
        done(error, socket === undefined ? undefined : new ReplicaConnection(socket, this));
      } catch (unexpected) {
        this.crashed(unexpected);
      }
    };
    return dial(this.#address, { timeoutMs: connectTimeoutMs, clock: this.#services.clock }, onDialled);
  }

  /** Keeps a connection whose response was read to the end, for the next request. */
  give(connection: ReplicaConnection, head: ResponseHead): void {
    connection.finish(idleMsAfter(head));
    if (this.#isClosed || this.#idle.length >= maxIdleConnections) connection.destroy();
    else this.#idle.push(connection);
  }

  forget(connection: ReplicaConnection): void {
    this.#services.metrics.replicaConnectionClosed();
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  closedWhileIdle(connection: ReplicaConnection): void {
    const { machineNow } = this.deadlines;
    this.#trust.noteClosed(machineNow, machineNow - connection.idleSince);
  }

  crashed(error: unknown): void {
    this.#services.crashed(error);
  }

  /** Closes what is idle now, and later what becomes so. Requests that are under way go on. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  /** Undoes `close`. */
  reopen(): void {
    this.#isClosed = false;
  }
}

function idleMsAfter(head: ResponseHead): number {
  const told = keepAliveSeconds(head);
  if (told === undefined) return defaultIdleMs;
  return Math.max(minIdleMs, Math.min(maxIdleMs, told * 1_000 - keepAliveMarginMs));
}
