import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { mayTrail } from '../../src/balancer/http1/field-kinds.ts';
import { MemorySocket } from './memory-socket.ts';
import type { ReadMessage, Reading } from './reading.ts';

/** Pseudo-code of a refusal: after such a request `node:http` silently skips bytes. */
export const stoppedAtUpgrade = 'stopped at an upgrade';

/** A request while it is read. */
interface OpenRequest {
  readonly incoming: IncomingMessage;
  body: string;
  isEnded: boolean;
}

/** All requests of one connection. */
interface Connection {
  readonly requests: OpenRequest[];
  refusal: string | undefined;
}

const connections = new WeakMap<object, Connection>();

/** No limits and no timers, so that only the grammar decides. */
const server = createServer({ maxHeaderSize: 16_777_216, insecureHTTPParser: false, requireHostHeader: false, keepAliveTimeout: 0 });
server.maxHeadersCount = 0;
server.maxRequestsPerSocket = 0;
server.timeout = 0;
server.headersTimeout = 0;
server.requestTimeout = 0;
for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, take);
server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
  const connection = connections.get(socket);
  if (connection !== undefined) connection.refusal ??= error.code ?? error.message;
});

function take(incoming: IncomingMessage, response: ServerResponse): void {
  const open: OpenRequest = { incoming, body: '', isEnded: false };
  connections.get(incoming.socket)?.requests.push(open);
  incoming.on('data', (bytes: Buffer) => {
    open.body += bytes.toString('latin1');
  });
  incoming.on('error', () => undefined);
  incoming.on('end', () => {
    open.isEnded = true;
    response.end();
  });
}

/** Reads a client's bytes on one connection with `node:http` as the server. */
export async function readAsNodeServer(bytes: Buffer): Promise<Reading> {
  const socket = new MemorySocket();
  const connection: Connection = { requests: [], refusal: undefined };
  connections.set(socket, connection);
  server.emit('connection', socket);
  socket.push(bytes);
  // Node delivers parsed data in later turns of the event loop.
  do await nextTurn();
  while (connection.requests.some(({ incoming, isEnded }) => incoming.complete && !isEnded && !incoming.destroyed));
  const messages = connection.requests.map(readingOf);
  const stopped = connection.requests.some(({ incoming }) => asksForUpgrade(incoming)) ? stoppedAtUpgrade : undefined;
  socket.destroy();
  return { messages, refusal: connection.refusal ?? stopped };
}

function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && headers.connection?.toLowerCase().includes('upgrade') === true;
}

function readingOf({ incoming, body, isEnded }: OpenRequest): ReadMessage {
  const { method = '', url = '', rawHeaders, rawTrailers } = incoming;
  return { first: `${method} ${url}`, fields: linesOf(rawHeaders), body, trailers: passedOn(rawTrailers), isComplete: isEnded };
}

/** `Name: value` for each field. */
export function linesOf(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1] ?? ''}`] : []));
}

/** Only the trailers that a proxy may forward. */
export function passedOn(trailers: readonly string[]): readonly string[] {
  return trailers.flatMap((name, index) => (index % 2 === 0 && mayTrail(name) ? [name, trailers[index + 1] ?? ''] : []));
}
