import type { Socket } from 'node:net';
import { withDeadline } from '../../shared/deadline.ts';
import type { HostServerDeps } from './host-server.ts';
import { readLine } from './read-line.ts';

const probeMs = 2_000;
const maxHeadBytes = 8_192;

/**
 * Answers a probe: `GET /healthz` says that this process is not stuck, `GET /readyz` that it serves. No more of HTTP is spoken than probes and other
 * balancer hosts need: one request for each connection, without a body.
 */
export async function answerProbe(socket: Socket, { clock, isReady }: Pick<HostServerDeps, 'clock' | 'isReady'>): Promise<void> {
  const first = await withDeadline(
    clock,
    probeMs,
    () => readHead(socket),
    () => new Error('the request did not come in time'),
  );
  const path = /^GET (\/healthz|\/readyz) HTTP\/1\.[01]\r?$/.exec(first)?.[1];
  const isWell = path === '/healthz' || (path === '/readyz' && isReady());
  const status = path === undefined ? '404 Not Found' : isWell ? '200 OK' : '503 Service Unavailable';
  const body = path === undefined ? 'unknown\n' : isWell ? 'ok\n' : 'not ready\n';
  socket.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
}

/** The first line of a request, once the whole head is there. */
async function readHead(socket: Socket): Promise<string> {
  const first = await readLine(socket, maxHeadBytes);
  let left = maxHeadBytes - first.length;
  for (;;) {
    const line = (await readLine(socket, left)).trim();
    if (line === '') return first;
    left -= line.length + 1;
  }
}
