import type { Socket } from 'node:net';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import { checkPortIsFree, ListeningSocket } from './listening-socket.ts';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import { forwardedClient } from '../client/forwarded-client.ts';
import { overloaded } from '../exchange/balancer-responses.ts';
import type { Listening } from './thread-messages.ts';

/** A client's connection, in any protocol. */
export interface ServedConnection {
  /** The process is ending: the next response is the last one, and an idle connection is closed soon. */
  drain(): void;
  /** Another process has taken over: reports that where the protocol can (HTTP/2), without breaking a request off. */
  handOver?(): void;
  destroy(): void;
  /** Sends one response and closes, before anything was read. */
  reject(response: BalancerResponse): void;
}

/** Begins to serve a client's socket; `onClosed` is called once when its connection is closed. */
type ServeSocket = (socket: Socket, onClosed: (connection: ServedConnection) => void, accepted: Accepted) => ServedConnection;

/** How a connection arrived. */
export interface Accepted {
  /** At the port for plain HTTP whose clients are sent to the endpoint. */
  readonly isForRedirect: boolean;
  /** It comes from a proxy, and its first bytes are to be a PROXY header. The client's address is not checked yet. */
  readonly hasProxyHeader: boolean;
}

/** How often a busy redirect port is tried again. */
const retryMs = 5_000;

/** Connections beyond the limit that get a refusal; any beyond these are reset. */
const maxRejected = 64;

interface ListenerOptions {
  readonly serve: ServeSocket;
}

/** The endpoint in one thread. */
export class Listener {
  readonly #context: BalancerContext;
  readonly #options: ListenerOptions;
  readonly #connections = new Set<ServedConnection>();
  readonly #rejected = new Set<ServedConnection>();
  #sockets: readonly ListeningSocket[] = [];
  #onEmpty: (() => void) | undefined;

  constructor(context: BalancerContext, options: ListenerOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Resolves with the port and the numbers of the sockets. Rejects with the system's error, such as EADDRINUSE. */
  async listen(sources: readonly Listening[]): Promise<{ readonly port: number; readonly fds: readonly number[] }> {
    this.#sockets = await Promise.all(sources.map((one) => this.#open(one, false)));
    return { port: this.#sockets[0]?.port ?? 0, fds: this.#sockets.flatMap(({ fd }) => fd ?? []) };
  }

  /**
   * Also accepts at a port whose clients are sent to the endpoint. Never fails: the endpoint serves without it, and a busy
   * port is tried until it is free. `mayShare`: a predecessor has the port too.
   */
  async listenForRedirects(port: number, mayShare: boolean, onBusy: (error: unknown) => void): Promise<void> {
    const { counters, clock, config } = this.#context;
    try {
      if (!mayShare) await checkPortIsFree(config.host, port);
      const socket = await this.#open({ port }, true);
      if (counters.isDraining) socket.close();
      else this.#sockets = [...this.#sockets, socket];
    } catch (error) {
      onBusy(error);
      clock.after(retryMs, () => {
        if (!counters.isDraining) void this.listenForRedirects(port, mayShare, () => undefined);
      });
    }
  }

  #open(source: Listening, isForRedirect: boolean): Promise<ListeningSocket> {
    const { crashed, config } = this.#context;
    const onConnection = (socket: Socket): void => this.#accept(socket, isForRedirect);
    return ListeningSocket.open(source, { host: config.host, onConnection, onError: crashed });
  }

  /** Accepts no more connections and lets running requests finish; after `graceMs` it closes them. */
  async drain(graceMs: number): Promise<void> {
    this.#stopAccepting();
    for (const connection of this.#connections) connection.drain();
    await this.#emptied(graceMs);
  }

  /** Accepts no more. The next response reports it: closing an idle connection could cut off a request on its way. */
  async handOver(graceMs: number): Promise<void> {
    this.#stopAccepting();
    for (const connection of this.#connections) connection.handOver?.();
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

  #accept(socket: Socket, isForRedirect: boolean): void {
    this.#context.metrics.connectionOpened();
    const { files, admission } = this.#context;
    const hasProxyHeader = admission.isProxy(socket.remoteAddress);
    if (!hasProxyHeader && !admission.admits(socket.remoteAddress)) {
      const isTls = this.#context.config.tls !== null && !isForRedirect;
      this.#context.connectionRefused(forwardedClient(socket.remoteAddress, isTls, []), 'address_not_allowed');
      socket.resetAndDestroy();
      return undefined;
    }
    const accepted = { isForRedirect, hasProxyHeader };
    if (!files.hasRoomForClient) return this.#reject(socket, accepted);
    const connection = this.#options.serve(socket, (closed) => this.#forget(closed), accepted);
    this.#connections.add(connection);
    files.setClients(this.#connections.size);
    return undefined;
  }

  #reject(socket: Socket, accepted: Accepted): void {
    this.#context.metrics.refusedForFiles('client_connection');
    if (this.#rejected.size >= maxRejected) {
      socket.resetAndDestroy();
      return;
    }
    const connection = this.#options.serve(socket, (closed) => this.#rejected.delete(closed), accepted);
    this.#rejected.add(connection);
    connection.reject(overloaded(this.#context.config));
  }

  #forget(connection: ServedConnection): void {
    this.#connections.delete(connection);
    this.#context.files.setClients(this.#connections.size);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }
}
