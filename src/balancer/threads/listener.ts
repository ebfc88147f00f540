import type { Socket } from 'node:net';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import type { BoardRow } from '../board/board.ts';
import { ListeningSocket } from './listening-socket.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import { overloaded } from '../exchange/own-responses.ts';
import type { Listening } from './thread-messages.ts';

/** A connection of a client, whatever protocol it speaks. */
export interface ServedConnection {
  /** The process is ending: the next response is the last one, and a connection on which nothing is asked for is closed soon. */
  drain(): void;
  /** Another process has taken over: says so where the protocol has a way to (HTTP/2), without breaking anything off. */
  leave?(): void;
  /** Closes it at once. */
  destroy(): void;
  /** Says one thing and closes; before anything was read. */
  turnAway(response: OwnResponse): void;
}

/** Begins to serve a client's socket; `onClosed` is called once when its connection is closed. */
export type ServeSocket = (socket: Socket, onClosed: (connection: ServedConnection) => void) => ServedConnection;

/** Connections beyond the limit that are told so at once; what is beyond these is reset. */
const maxTurnedAway = 64;

/** What a listener needs besides the context. */
export interface ListenerOptions {
  readonly row: BoardRow;
  /** Open connections of all threads. */
  readonly maxConnections: number;
  readonly serve: ServeSocket;
}

/** The endpoint in one thread: takes clients' connections until it is told to end. */
export class Listener {
  readonly #context: BalancerContext;
  readonly #options: ListenerOptions;
  readonly #countCell: number;
  readonly #connections = new Set<ServedConnection>();
  readonly #turnedAway = new Set<ServedConnection>();
  #sockets: readonly ListeningSocket[] = [];
  #onEmpty: (() => void) | undefined;

  constructor(context: BalancerContext, options: ListenerOptions) {
    this.#context = context;
    this.#options = options;
    this.#countCell = options.row.board.threadCell('connections', options.row.thread);
  }

  /** Resolves with the port and the numbers of the sockets. Rejects with the system's error, such as EADDRINUSE. */
  async listen(where: readonly Listening[]): Promise<{ readonly port: number; readonly fds: readonly number[] }> {
    const { crashed, config } = this.#context;
    const options = { host: config.host, onConnection: (socket: Socket) => this.#accept(socket), onError: crashed };
    this.#sockets = await Promise.all(where.map((one) => ListeningSocket.open(one, options)));
    return { port: this.#sockets[0]?.port ?? 0, fds: this.#sockets.flatMap(({ fd }) => fd ?? []) };
  }

  /** Takes no more connections and lets requests under way end; after `graceMs` they are cut. */
  async drain(graceMs: number): Promise<void> {
    this.#stopAccepting();
    for (const connection of this.#connections) connection.drain();
    await this.#emptied(graceMs);
  }

  /**
   * Takes no more connections, as another process does. A client hears of it with its next response: an idle connection that were closed instead
   * could be closed under a request that is on its way.
   */
  async leave(graceMs: number): Promise<void> {
    this.#stopAccepting();
    for (const connection of this.#connections) connection.leave?.();
    await this.#emptied(graceMs);
  }

  #stopAccepting(): void {
    this.#context.counters.isDraining = true;
    for (const socket of this.#sockets) socket.close();
    this.#sockets = [];
  }

  async #emptied(graceMs: number): Promise<void> {
    if (this.#connections.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    const stop = new AbortController();
    await Promise.race([empty, this.#context.clock.sleep(graceMs, stop.signal)]);
    stop.abort();
    for (const connection of this.#connections) connection.destroy();
  }

  #accept(socket: Socket): void {
    this.#context.metrics.connectionOpened();
    const { board } = this.#options.row;
    if (board.sumOfThreads('connections') >= this.#options.maxConnections) return this.#turnAway(socket);
    const connection = this.#options.serve(socket, (closed) => this.#forget(closed));
    this.#connections.add(connection);
    Atomics.store(board.cells, this.#countCell, this.#connections.size);
    return undefined;
  }

  #turnAway(socket: Socket): void {
    if (this.#turnedAway.size >= maxTurnedAway) {
      socket.resetAndDestroy();
      return;
    }
    const connection = this.#options.serve(socket, (closed) => this.#turnedAway.delete(closed));
    this.#turnedAway.add(connection);
    connection.turnAway(overloaded(this.#context.config));
  }

  #forget(connection: ServedConnection): void {
    this.#connections.delete(connection);
    Atomics.store(this.#options.row.board.cells, this.#countCell, this.#connections.size);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }
}
