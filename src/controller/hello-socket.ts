import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { splitLines } from '../shared/lines.ts';

/** A small server by which a process can be found, recognised and woken. */
export interface HelloSocket {
  close(): void;
}

/**
 * Listens on a Unix socket (mode 0600): says `{"type":"hello","pid":…}` to whoever connects and calls `onLine` for each line they send. The open
 * connection is the sign of life: it breaks the moment the process dies. The caller holds a lock, so a socket file that is there is stale.
 */
export async function serveHello(path: string, onLine: (line: string) => void): Promise<HelloSocket> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A peer that goes away is nothing to act on.
    socket.on('error', () => undefined);
    socket.on('data', splitLines(onLine));
    socket.write(`${JSON.stringify({ type: 'hello', pid: process.pid })}\n`);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Rejects a failed start; a later failure to accept one connection (too many open files) passes.
  server.on('error', reject);
  server.listen(path, resolve);
  await promise;
  chmodSync(path, 0o600);
  return {
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
