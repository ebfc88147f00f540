import { request, type IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MemorySocket } from './memory-socket.ts';
import { linesOf, passedOn } from './node-server.ts';
import type { ReadMessage, Reading } from './reading.ts';

/** Bytes received on one connection so far. */
interface Connection {
  readonly messages: ReadMessage[];
  refusal: string | undefined;
  final: IncomingMessage | undefined;
  body: string;
  isEnded: boolean;
  isOver: boolean;
}

/** Reads a connection's bytes with `node:http` as the client of one request; the connection ends after them. */
export async function readAsNodeClient(bytes: Buffer, method: string): Promise<Reading> {
  const socket = new MemorySocket();
  const connection: Connection = { messages: [], refusal: undefined, final: undefined, body: '', isEnded: false, isOver: false };
  ask(socket, method, connection);
  // Node sends the request in the next turn; bytes before it would be ignored.
  await nextTurn();
  socket.push(bytes);
  await nextTurn();
  socket.push(null);
  do await nextTurn();
  while (!connection.isOver);
  socket.destroy();
  const { messages, final, body, isEnded, refusal } = connection;
  return { messages: final === undefined ? messages : [...messages, readFinal(final, body, isEnded)], refusal };
}

function ask(socket: MemorySocket, method: string, connection: Connection): void {
  const outgoing = request({ method, createConnection: () => socket, maxHeaderSize: 16_777_216 });
  outgoing.maxHeadersCount = 0;
  const takeWithoutBody = ({ statusCode, rawHeaders }: Pick<IncomingMessage, 'statusCode' | 'rawHeaders'>): void => {
    const first = String(statusCode);
    connection.messages.push({ first, fields: linesOf(rawHeaders), body: '', trailers: [], isComplete: true });
  };
  outgoing.on('information', takeWithoutBody);
  outgoing.on('upgrade', (incoming) => {
    takeWithoutBody(incoming);
    connection.isOver = true;
  });
  outgoing.on('response', (incoming) => {
    connection.final = incoming;
    incoming.on('data', (part: Buffer) => {
      connection.body += part.toString('latin1');
    });
    incoming.on('error', () => undefined);
    incoming.on('end', () => {
      connection.isEnded = incoming.complete;
    });
    incoming.on('close', () => {
      connection.isOver = true;
    });
  });
  outgoing.on('error', (error: NodeJS.ErrnoException) => {
    connection.refusal ??= error.code ?? error.message;
  });
  outgoing.on('close', () => {
    connection.isOver = true;
  });
  outgoing.end();
}

function readFinal({ statusCode, rawHeaders, rawTrailers }: IncomingMessage, body: string, isComplete: boolean): ReadMessage {
  return { first: String(statusCode), fields: linesOf(rawHeaders), body, trailers: passedOn(rawTrailers), isComplete };
}
