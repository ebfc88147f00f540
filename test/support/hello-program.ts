import { spawn } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';

/**
 * A process with the supervisor's protocol, for its tests: `hello-program.ts SOCKET VERSION [CONFIG]`. It sends a hello
 * on the Unix socket and a message ten times a second. On an end request it closes its connections and exits a moment
 * later. On a hand-over request it starts a successor of version `new` and closes its connections once that runs. It
 * stays alive like a process that still has requests. Like the balancer it starts one successor, however often it is
 * asked.
 */
const [, self = '', path = '', version = '', config = 'new'] = process.argv;
const sockets = new Set<Socket>();
const isSuccessor = process.send !== undefined;
const ownPath = isSuccessor ? `${path}.${process.pid}` : path;

const server = createServer((socket) => {
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
  socket.on('data', (data) => {
    if (data.toString().includes('hand-over')) handOver();
  });
  socket.write(`${JSON.stringify({ type: 'hello', pid: process.pid, version, config })}\n`);
});

let isHandingOver = false;

function handOver(): void {
  if (isHandingOver) return;
  isHandingOver = true;
  const successor = spawn(process.execPath, [self, path, 'new'], { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  successor.once('message', () => {
    successor.disconnect();
    successor.unref();
    for (const socket of sockets) socket.destroy();
  });
}

if (!isSuccessor) rmSync(path, { force: true });
server.listen(ownPath, () => {
  if (!isSuccessor) return;
  renameSync(ownPath, path);
  process.send?.('ready');
});
setInterval(() => {
  for (const socket of sockets) socket.write('{"type":"alive"}\n');
}, 100);
process.once('SIGTERM', () => {
  server.close();
  for (const socket of sockets) socket.destroy();
  setTimeout(() => process.exit(0), 1_000);
});
