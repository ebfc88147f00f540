import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Listening } from './thread-messages.ts';

/** Per direction of a client connection: what a slow reader can make the balancer hold, beside the kernel's buffers. */
const bufferBytes = 131_072;
/** Connections that the kernel queues until the balancer accepts them. */
const backlog = 4_096;

interface ListeningOptions {
  readonly host: string;
  readonly onConnection: (socket: Socket) => void;
  /** Called with an error such as EMFILE: one connection was lost, but the next may succeed. */
  readonly onError: (error: unknown) => void;
}

/** One socket of the endpoint. The kernel spreads the connections to one port over all sockets that listen there. */
export class ListeningSocket {
  readonly port: number;
  /** Its number in this process, for a successor to inherit; undefined when the system has none. */
  readonly fd: number | undefined;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.port = portOf(server);
    this.fd = descriptorOf(server);
  }

  /** Rejects with the system's error, such as EADDRINUSE. */
  static open(source: Listening, options: ListeningOptions): Promise<ListeningSocket> {
    // The balancer closes both halves itself: a client that sends no more may still await a response.
    const server = createServer({ allowHalfOpen: true, noDelay: true, highWaterMark: bufferBytes }, options.onConnection);
    const at = 'fd' in source ? { fd: source.fd } : { host: options.host, port: source.port, reusePort: true };
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...at, backlog }, () => {
        server.off('error', reject);
        server.on('error', options.onError);
        resolve(new ListeningSocket(server));
      });
    });
  }

  /** Stops accepting. Connections in the kernel's queue are lost, unless another process has the socket too. */
  close(): void {
    this.#server.close();
  }
}

/** Rejects with EADDRINUSE when any process listens at the port, even one that would share it. */
export function checkPortIsFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer((socket) => socket.destroy());
    probe.once('error', reject);
    probe.listen({ host, port }, () => probe.close(() => resolve()));
  });
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/** Node has no public API for it. Without the internal one, only the hand-over of sockets fails. */
function descriptorOf(server: Server): number | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- that is its name in Node
  const handle: unknown = '_handle' in server ? server._handle : undefined;
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return undefined;
  return typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined;
}
