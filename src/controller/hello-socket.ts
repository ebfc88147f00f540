import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { splitLines } from '../shared/lines.ts';

/** Heartbeat interval, ms. A peer that receives none for several intervals may treat the process as hung. */
const aliveMs = 2_000;
/** Buffer limit per client, bytes. A client that does not read is disconnected. */
const maxUnreadBytes = 65_536;

interface HelloSocket {
  close(): void;
}

interface HelloOptions {
  readonly clock: Clock;
  /** Version of the code that this process runs; see `shared/version.ts`. */
  readonly version: string;
  /** Configuration that this process was started with. A supervisor that expects another one renews the process. */
  readonly config?: string;
  readonly onLine: (line: string) => void;
}

/**
 * Serves a Unix socket (mode 0600) by which other processes find, identify and wake this process. Sends
 * `{"type":"hello","pid":…,"version":…}` on connect, then `{"type":"alive"}` periodically. The connection breaks the
 * moment the process dies. The caller holds a lock, so an existing socket file is stale.
 */
export async function serveHello(path: string, { clock, version, config, onLine }: HelloOptions): Promise<HelloSocket> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A client that disconnects needs no action.
    socket.on('error', () => undefined);
    socket.on('data', splitLines(onLine));
    socket.write(`${JSON.stringify({ type: 'hello', pid: process.pid, version, config })}\n`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Rejects a failed start. Later errors of a single accept (too many open files) are ignored after that.
  server.on('error', reject);
  server.listen(path, resolve);
  await promise;
  chmodSync(path, 0o600);
  const stopAlive = clock.every(aliveMs, () => {
    for (const socket of sockets) {
      if (socket.writableLength > maxUnreadBytes) socket.destroy();
      else socket.write('{"type":"alive"}\n');
    }
  });
  return {
    close() {
      stopAlive();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
