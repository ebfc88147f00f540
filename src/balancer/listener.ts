import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { BalancerContext } from './balancer-context.ts';
import { ClientConnection } from './client-connection.ts';
import { overloaded } from './own-responses.ts';

/** Per direction of a client's connection: what a slow reader can make us hold, beside the kernel's own buffers. */
const bufferBytes = 131_072;
const backlog = 4_096;
/** Each takes one file descriptor, and its request another one. */
const maxConnections = 20_000;

/** The endpoint: takes clients' connections until it is drained. */
export class Listener {
  readonly #context: BalancerContext;
  readonly #server: Server;
  readonly #connections = new Set<ClientConnection>();
  #onEmpty: (() => void) | undefined;

  constructor(context: BalancerContext) {
    this.#context = context;
    // Both halves are closed by us, as only the connection knows whether a client that sends no more is still owed a response.
    const options = { allowHalfOpen: true, noDelay: true, highWaterMark: bufferBytes };
    this.#server = createServer(options, (socket) => this.#accept(socket));
  }

  /** Resolves with the port that is listened on. Rejects with the system's error, such as EADDRINUSE. */
  listen(): Promise<number> {
    const { host, port } = this.#context.config;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, backlog }, () => {
        this.#server.off('error', reject);
        // Such as EMFILE: this connection is lost, the next may not be.
        this.#server.on('error', (error) => this.#context.crashed(error));
        resolve(portOf(this.#server));
      });
    });
  }

  /** Takes no more connections and lets requests under way end; after `graceMs` they are cut. */
  async drain(graceMs: number): Promise<void> {
    this.#context.counters.isDraining = true;
    this.#server.close();
    for (const connection of this.#connections) connection.drain();
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
    const connection = new ClientConnection(socket, this.#context, (closed) => this.#forget(closed));
    if (this.#connections.size >= maxConnections) connection.turnAway(overloaded(this.#context.config));
    this.#connections.add(connection);
  }

  #forget(connection: ClientConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}
