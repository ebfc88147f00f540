import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Listening } from './thread-messages.ts';

/** Per direction of a client's connection: what a slow reader can make us hold, beside the kernel's own buffers. */
const bufferBytes = 131_072;
/** Connections that the kernel keeps for us until we accept them. */
const backlog = 4_096;

/** What a listening socket needs. */
export interface ListeningOptions {
  readonly host: string;
  readonly onConnection: (socket: Socket) => void;
  /** Such as EMFILE: one connection was lost, the next may not be. */
  readonly onError: (error: unknown) => void;
}

/** A socket of the endpoint. Several, of several threads and processes, may listen at one port: the kernel spreads connections over them. */
export class ListeningSocket {
  readonly port: number;
  /** Its number in this process, for a successor to inherit; undefined when the system gives none. */
  readonly fd: number | undefined;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.port = portOf(server);
    this.fd = descriptorOf(server);
  }

  /** Rejects with the system's error, such as EADDRINUSE. */
  static open(where: Listening, options: ListeningOptions): Promise<ListeningSocket> {
    // Both halves are closed by us, as only the connection knows whether a client that sends no more is still owed a response.
    const server = createServer({ allowHalfOpen: true, noDelay: true, highWaterMark: bufferBytes }, options.onConnection);
    const at = 'fd' in where ? { fd: where.fd } : { host: options.host, port: where.port, reusePort: true };
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...at, backlog }, () => {
        server.off('error', reject);
        server.on('error', options.onError);
        resolve(new ListeningSocket(server));
      });
    });
  }

  /** Accepts nothing more. Connections that wait to be accepted are lost, unless another process has the socket too. */
  close(): void {
    this.#server.close();
  }
}

/** Rejects with EADDRINUSE when anybody listens at the port, even one who would share it. */
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

/** Node has no public way to learn it. Should the internal one go, sockets can no longer be handed over, and nothing else is lost. */
function descriptorOf(server: Server): number | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- that is its name in Node
  const handle: unknown = '_handle' in server ? server._handle : undefined;
  if (typeof handle !== 'object' || handle === null || !('fd' in handle)) return undefined;
  return typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined;
}
