import type { Socket } from 'node:net';
import type { ReplicaProtocol } from '../../domain/task.ts';
import type { Clock } from '../../shared/clock.ts';
import type { FileBudget } from '../board/file-budget.ts';
import { dial, DialError, type CancelDial, type DialDone } from '../../shared/system/dial.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { Deadlines } from '../transport/deadlines.ts';
import { keepAliveSeconds, type ResponseHead } from '../http1/response-head.ts';
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
 * Connects to a replica that a thread may have under way. Programs queue at most so many where they keep the old limit of
 * Linux (`somaxconn` before 5.4). Each SYN beyond is lost and costs a second.
 */
const mostDials = 128;

type OnConnected = (error: DialError | undefined, connection: ReplicaConnection | undefined) => void;

/** What a pool needs from the process. */
export interface PoolServices {
  readonly protocol: ReplicaProtocol;
  readonly clock: Clock;
  readonly deadlines: Deadlines;
  readonly metrics: ThreadMetrics;
  /** Each connection to a replica takes one of its files. */
  readonly files: FileBudget;
  /** Most attempts in flight at one replica, over all threads. */
  readonly maxConnectionsPerReplica: number;
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
  /** Connections that are being opened or have not answered yet. */
  #fresh = 0;
  #dialling = 0;
  /** Requests whose connects wait for others to end, in order. */
  readonly #waiting = new Set<(error: DialError | undefined) => void>();

  constructor(address: ReplicaAddress, services: PoolServices) {
    this.#address = address;
    this.#services = services;
    this.deadlines = services.deadlines;
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

  /** Opens a connection, after earlier ones if many are being opened. If one fails, those that wait fail with it. */
  dial(done: OnConnected): CancelDial {
    if (this.#dialling < mostDials) return this.#dial(done);
    let cancel: CancelDial | undefined;
    const start = (error: DialError | undefined): void => {
      if (error === undefined) cancel = this.#dial(done);
      else done(error, undefined);
    };
    this.#waiting.add(start);
    return () => {
      this.#waiting.delete(start);
      cancel?.();
    };
  }

  #dial(done: OnConnected): CancelDial {
    let isPending = true;
    const settle = (isOpen: boolean): void => {
      if (!isPending) return;
      isPending = false;
      this.#dialling -= 1;
      if (!isOpen) this.#fresh -= 1;
    };
    const onDialled = (error: DialError | undefined, socket: Socket | undefined): void => {
      settle(socket !== undefined);
      try {
        if (socket !== undefined) this.#services.metrics.replicaConnectionOpened();
        done(error, socket === undefined ? undefined : new ReplicaConnection(socket, this));
      } catch (unexpected) {
        this.crashed(unexpected);
      }
      this.#dialEnded(error);
    };
    this.#fresh += 1;
    this.#dialling += 1;
    const cancel = dialWithinBudget(this.#address, this.#services, onDialled);
    return () => {
      settle(false);
      cancel();
      this.#dialEnded(undefined);
    };
  }

  #dialEnded(error: DialError | undefined): void {
    const waiting = [...this.#waiting].slice(0, error === undefined ? mostDials - this.#dialling : undefined);
    for (const start of waiting) {
      // The callback of an earlier one may have cancelled it.
      if (this.#waiting.delete(start)) start(error);
    }
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
export function dialWithinBudget(address: ReplicaAddress, { clock, files, metrics }: PoolServices, done: DialDone): CancelDial {
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
