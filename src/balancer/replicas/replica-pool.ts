import type { Socket } from 'node:net';
import type { ReplicaProtocol } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import type { FileBudget } from '../board/file-budget.ts';
import { dial, DialError, type CancelDial, type DialDone } from '../../shared/system/dial.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import { keepAliveSeconds, type ResponseHead } from '../http1/response-head.ts';
import { DialQueue } from './dial-queue.ts';
import { IdleTrust } from './idle-trust.ts';
import type { ThreadMetrics } from '../metrics/thread-metrics.ts';
import { ReplicaConnection, type ReplicaConnectionOwner } from './replica-connection.ts';

/** Below the 5 s after which common servers (Node, uvicorn) close an idle connection. */
const defaultIdleMs = 4_000;
/** Upper limit for a replica's own value: a middlebox may forget a connection without traffic. */
const maxIdleMs = 60_000;
/** A replica that announces N seconds may count from an earlier moment than the balancer does. */
const keepAliveMarginMs = 1_000;
/** Lower limit for a replica's own value: without any reuse, each request would cost a connect. */
const minIdleMs = 200;
/** For one replica and thread: a peak above this is unlikely to recur soon. */
const maxIdleConnections = 1_024;
/** Limit for a connect, ms: a lost SYN is sent again after 1 s and after 3 s, so it allows three tries (RFC 6298). */
const connectTimeoutMs = 5_000;

/**
 * Connects to a replica under way, over all threads. Programs queue at most so many where they keep the old limit of Linux
 * (`somaxconn` before 5.4). A SYN beyond that is lost and costs a second.
 */
const mostDials = 128;

/** What a replica and its connections need from the process. */
export interface ReplicaServices {
  readonly protocol: ReplicaProtocol;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly metrics: ThreadMetrics;
  /** Each connection to a replica takes one of its files. */
  readonly files: FileBudget;
  /** Most attempts in flight at one replica, over all threads. */
  readonly maxConnectionsPerReplica: number;
  /** Threads of the process. */
  readonly threads: number;
  readonly crashed: (error: unknown) => void;
}

/** The connections to one replica that are free for the next request. */
export class ReplicaPool implements ReplicaConnectionOwner {
  readonly deadlines: Deadlines;
  readonly #services: ReplicaServices;
  readonly #dials: DialQueue;
  /** The most recently used is last. */
  readonly #idle: ReplicaConnection[] = [];
  readonly #trust = new IdleTrust();
  #isClosed = false;
  /** Connections that wait to be opened, are being opened or have not answered yet. */
  #fresh = 0;

  constructor(address: ReplicaAddress, services: ReplicaServices) {
    this.#services = services;
    this.deadlines = services.deadlines;
    this.#dials = new DialQueue({
      clock: services.clock,
      most: Math.ceil(mostDials / services.threads),
      waitMs: connectTimeoutMs,
      dial: (done) => dialWithinBudget(address, services, done),
    });
  }

  /** The connection that was idle for the shortest time. `mayRunTwice`: the request may be sent again without harm. */
  take(mayRunTwice: boolean): ReplicaConnection | undefined {
    if (mayRunTwice) return this.#idle.pop();
    const { machineNow } = this.deadlines;
    const [oldest] = this.#idle;
    const newest = this.#idle.at(-1);
    if (oldest === undefined || newest === undefined) return undefined;
    this.#trust.recordAlive(machineNow, machineNow - oldest.idleSince);
    // Reads the clock itself: if this process just stood still, the coarse time would make a stale connection look
    // fresh.
    return this.#trust.allows(this.#services.clock.monotonic() - newest.idleSince) ? this.#idle.pop() : undefined;
  }

  get hasFresh(): boolean {
    return this.#fresh > 0;
  }

  dial(done: (error: DialError | undefined, connection: ReplicaConnection | undefined) => void): CancelDial {
    let isPending = true;
    const settle = (isOpen: boolean): void => {
      if (isPending && !isOpen) this.#fresh -= 1;
      isPending = false;
    };
    const onDialled = (error: DialError | undefined, socket: Socket | undefined): void => {
      settle(socket !== undefined);
      try {
        if (socket !== undefined) this.#services.metrics.replicaConnectionOpened();
        done(error, socket === undefined ? undefined : new ReplicaConnection(socket, this));
      } catch (unexpected) {
        this.crashed(unexpected);
      }
    };
    this.#fresh += 1;
    const cancel = this.#dials.dial(onDialled);
    return () => {
      settle(false);
      cancel();
    };
  }

  keep(connection: ReplicaConnection, head: ResponseHead): void {
    connection.finish(idleMsAfter(head));
    if (this.#isClosed || this.#idle.length >= maxIdleConnections) connection.destroy();
    else this.#idle.push(connection);
  }

  forget(connection: ReplicaConnection): void {
    this.#services.metrics.replicaConnectionClosed();
    this.#services.files.closeReplicaConnection();
    if (!connection.hasAnswered) this.#fresh -= 1;
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  answered(): void {
    this.#fresh -= 1;
  }

  closedWhileIdle(connection: ReplicaConnection): void {
    const { machineNow } = this.deadlines;
    this.#trust.recordClosed(machineNow, machineNow - connection.idleSince);
  }

  crashed(error: unknown): void {
    this.#services.crashed(error);
  }

  closeIdle(): boolean {
    const connection = this.#idle.shift();
    connection?.destroy();
    return connection !== undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#dials.refuseWaiting();
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  reopen(): void {
    this.#isClosed = false;
  }
}

/**
 * Dials with a file of the budget, or fails with EMFILE. The file is released when the connect fails or the connection
 * closes.
 */
export function dialWithinBudget(address: ReplicaAddress, { clock, files, metrics }: ReplicaServices, done: DialDone): CancelDial {
  if (!files.openReplicaConnection()) {
    metrics.refusedForFiles('replica_connection');
    return clock.after(0, () => done(new DialError('EMFILE', 'Too many files are open for another connection to a replica'), undefined));
  }
  let isPending = true;
  const settle = (isOpen: boolean): void => {
    if (isPending && !isOpen) files.closeReplicaConnection();
    isPending = false;
  };
  const cancel = dial(address, { timeoutMs: connectTimeoutMs, clock }, (error, socket) => {
    settle(socket !== undefined);
    done(error, socket);
  });
  return () => {
    settle(false);
    cancel();
  };
}

function idleMsAfter(head: ResponseHead): number {
  const announcedSeconds = keepAliveSeconds(head);
  if (announcedSeconds === undefined) return defaultIdleMs;
  return Math.max(minIdleMs, Math.min(maxIdleMs, announcedSeconds * 1_000 - keepAliveMarginMs));
}
