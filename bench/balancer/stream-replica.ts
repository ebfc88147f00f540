import { createServer, type Socket } from 'node:net';
import { seededRandom } from '../../src/shared/random.ts';

/**
 * Four replicas in one process that send event streams. The answer to `GET /COUNT/GAP` has COUNT events, one each GAP
 * ms, each in its own chunk.
 *
 * It prints its ports as one line of JSON, and answers each line on standard input with the number of events sent so
 * far. Argument: the interval between checks for due events, ms.
 */
const tickMs = Number(process.argv[2]);
const head = [
  'HTTP/1.1 200 OK',
  'server: uvicorn',
  'cache-control: no-cache',
  'content-type: text/event-stream; charset=utf-8',
  'transfer-encoding: chunked',
  '\r\n',
].join('\r\n');
const event =
  'data: {"id":"chatcmpl-8c1f0a7be2d94c1f","object":"chat.completion.chunk","model":"llama-3.1-8b","choices":[{"index":0,"delta":{"content":" token"}}]}\n\n';
const chunk = Buffer.from(`${event.length.toString(16)}\r\n${event}\r\n`);
const lastChunk = '0\r\n\r\n';
const requestLine = /GET \/(\d+)\/(\d+) HTTP/;

/** A running reply. */
interface Stream {
  readonly socket: Socket;
  readonly gapMs: number;
  eventsLeft: number;
  dueAt: number;
}

const random = seededRandom(1);
const streams = new Set<Stream>();
let eventsSent = 0;

function begin(socket: Socket, count: number, gapMs: number): Stream {
  socket.write(head);
  // Streams begin at a random moment of their gap, so they do not send in step even when opened together.
  const stream = { socket, gapMs, eventsLeft: count, dueAt: performance.now() + random() * gapMs };
  streams.add(stream);
  return stream;
}

function tick(): void {
  const now = performance.now();
  for (const stream of streams) if (stream.dueAt <= now) sendEvent(stream, now);
}

function sendEvent(stream: Stream, now: number): void {
  stream.socket.write(chunk);
  eventsSent += 1;
  stream.eventsLeft -= 1;
  // A late event delays the later ones; otherwise they would be sent together.
  stream.dueAt = Math.max(stream.dueAt + stream.gapMs, now + stream.gapMs / 2);
  if (stream.eventsLeft > 0) return;
  stream.socket.write(lastChunk);
  streams.delete(stream);
}

const servers = Array.from({ length: 4 }, () =>
  createServer({ noDelay: true }, (socket) => {
    let stream: Stream | undefined;
    socket.on('data', (bytes) => {
      const [, count, gapMs] = requestLine.exec(bytes.toString('latin1')) ?? [];
      if (count !== undefined) stream = begin(socket, Number(count), Number(gapMs));
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (stream !== undefined) streams.delete(stream);
    });
  }),
);
const ports = await Promise.all(
  servers.map(
    (server) =>
      new Promise<number>((resolve) => {
        server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
          const address = server.address();
          resolve(address !== null && typeof address === 'object' ? address.port : 0);
        });
      }),
  ),
);
setInterval(tick, tickMs);
process.stdin.on('data', () => console.log(String(eventsSent)));
console.log(JSON.stringify(ports));
