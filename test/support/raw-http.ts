import { createServer as createHttpServer, type RequestListener, type Server as HttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { readResponse } from './http1-events.ts';
import { waitFor } from './wait-for.ts';

/** A connection with full control over the sent bytes and access to the received ones. */
export class RawClient {
  /** Latin-1. */
  received = '';
  /** How the peer closed it; undefined while it is open. */
  ended: 'end' | 'reset' | undefined;
  readonly socket: Socket;

  /** `localAddress`: of this machine's loopback, for a client with an address of its own. */
  constructor(port: number, localAddress = '127.0.0.1') {
    this.socket = connect({ host: '127.0.0.1', port, localAddress, noDelay: true, allowHalfOpen: true });
    this.socket.on('data', (bytes: Buffer) => {
      this.received += bytes.toString('latin1');
    });
    this.socket.on('end', () => {
      this.ended ??= 'end';
    });
    this.socket.on('error', () => {
      this.ended = 'reset';
    });
  }

  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  /** Waits until the received text matches, and returns the match. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(String(pattern), () => pattern.exec(this.received) ?? undefined, { everyMs: 5, describe: () => this.received });
  }

  /** Waits until the received bytes are one complete response to a request of that method. */
  untilResponse(method: string): Promise<true | undefined> {
    const isComplete = (): true | undefined => readResponse(this.received, [], method, false).messages[0]?.isComplete === true || undefined;
    return waitFor('a complete response', isComplete, { everyMs: 1, describe: () => this.received.slice(0, 2_000) });
  }

  /** Waits until the peer has closed; returns all received bytes. */
  async closed(): Promise<string> {
    await waitFor('the connection to be closed', () => this.ended, { everyMs: 5, describe: () => this.received });
    return this.received;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Sends bytes on a new connection and reads until it is closed. */
export async function rawExchange(port: number, text: string): Promise<RawClient> {
  const client = new RawClient(port).send(text);
  try {
    await client.closed();
  } finally {
    client.destroy();
  }
  return client;
}

/** A replica with scripted behaviour; closed by `close`. */
export interface FakeReplica {
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: ReadonlySet<Socket>;
  /** Connections accepted so far. */
  readonly accepted: () => number;
  readonly close: () => Promise<void>;
}

/** Tracks the connections of a server: the open ones and the total count. */
export function watchConnections(server: Server | HttpServer): Pick<FakeReplica, 'connections' | 'accepted'> {
  const connections = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    connections.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => connections.delete(socket));
  });
  return { connections, accepted: () => accepted };
}

async function listen(server: Server | HttpServer): Promise<FakeReplica> {
  const { connections, accepted } = watchConnections(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    for (const socket of connections) socket.destroy();
    await closed;
  };
  return { port, connections, accepted, close };
}

/** A replica on `node:http`. */
export function httpReplica(handler: RequestListener, keepAliveTimeoutMs = 60_000): Promise<FakeReplica> {
  const server = createHttpServer({ keepAliveTimeout: keepAliveTimeoutMs, noDelay: true }, handler);
  server.maxHeadersCount = 0;
  return listen(server);
}

/**
 * A replica on bare sockets. For each read `onRequest` gets the socket, all bytes received on it so far (latin-1), and
 * the new bytes.
 */
export function rawReplica(onRequest: (socket: Socket, received: string, bytes: Buffer) => void): Promise<FakeReplica> {
  return listen(
    createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      let received = '';
      socket.on('data', (bytes: Buffer) => {
        received += bytes.toString('latin1');
        onRequest(socket, received, bytes);
      });
      socket.on('end', () => socket.end());
    }),
  );
}

/** A replica that answers each request with the same bytes and then performs `after`. */
export function scriptedReplica(answer: string, after: (socket: Socket) => void = () => undefined): Promise<FakeReplica> {
  return rawReplica((socket, received) => {
    if (!received.endsWith('\r\n\r\n')) return;
    socket.write(answer, 'latin1', () => after(socket));
  });
}

/** The tcpmux port, which no program serves. A port that was merely free could be assigned to any other process. */
const unusedPort = 1;

/** A port that refuses connections for the whole test. */
export function refusingPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = connect({ host: '127.0.0.1', port: unusedPort }, () => {
      probe.destroy();
      reject(new Error(`somebody listens at port ${unusedPort}`));
    });
    probe.on('error', () => resolve(unusedPort));
  });
}

/** Runs `use` with replicas, and always closes them afterwards. */
export async function withReplicas(
  starting: readonly Promise<FakeReplica>[],
  use: (...replicas: readonly FakeReplica[]) => Promise<void>,
): Promise<void> {
  const replicas = await Promise.all(starting);
  try {
    await use(...replicas);
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
}
