import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../shared/clock.ts';
import { splitLines } from '../shared/lines.ts';

/** How often it says that it lives, ms; who hears nothing for several times as long may take the process to hang. */
const aliveMs = 2_000;
/** A client that does not read is cut rather than remembered for. */
const maxUnreadBytes = 65_536;

/** A small server by which a process can be found, recognised and woken. */
export interface HelloSocket {
  close(): void;
}

/** What it says, and to whom it passes on what it hears. */
export interface HelloOptions {
  readonly clock: Clock;
  /** Of the code that this process runs; see `shared/code-version.ts`. */
  readonly version: string;
  /** What it was started with; whoever wants another one renews it. */
  readonly config?: string;
  readonly onLine: (line: string) => void;
}

/**
 * Listens on a Unix socket (mode 0600): says `{"type":"hello","pid":…,"version":…}` to whoever connects, and `{"type":"alive"}` from time to time;
 * calls `onLine` for each line they send. The open connection is the sign of life: it breaks the moment the process dies. The caller holds a
 * lock, so a socket file that is there is stale.
 */
export async function serveHello(path: string, { clock, version, config, onLine }: HelloOptions): Promise<HelloSocket> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A peer that goes away is nothing to act on.
    socket.on('error', () => undefined);
    socket.on('data', splitLines(onLine));
    socket.write(`${JSON.stringify({ type: 'hello', pid: process.pid, version, config })}\n`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Rejects a failed start; a later failure to accept one connection (too many open files) passes.
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
