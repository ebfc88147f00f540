import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { makeTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const script = fileURLToPath(new URL('forwarder.mjs', import.meta.url));
const children: ChildProcess[] = [];
const servers: Server[] = [];
let home = '';
let socketPath = '';

/** Starts a forwarder that dials loopback, because a test has no other address, and waits until it listens. */
async function startForwarder(...more: readonly string[]): Promise<ChildProcess> {
  const before = statSync(socketPath, { throwIfNoEntry: false })?.ino;
  const child = spawn(process.execPath, [script, socketPath, '127.0.0.1', ...more], { stdio: 'inherit' });
  children.push(child);
  await waitFor('the forwarder', () => {
    const now = statSync(socketPath, { throwIfNoEntry: false })?.ino;
    return now !== undefined && now !== before;
  });
  return child;
}

async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

beforeEach(async () => {
  home = makeTempHome();
  socketPath = join(home, 'in');
  await startForwarder();
});

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const server of servers.splice(0)) server.close();
  rmSync(home, { recursive: true, force: true });
});

test('the socket has mode 0600', () => {
  expect(statSync(socketPath).mode & 0o777).toBe(0o600);
});

test('data after the port reaches the program, sent in pieces or at once', async () => {
  const port = await listen((socket) => socket.pipe(socket));
  const pieces = connect({ path: socketPath });
  for (const character of `${port}\n`) {
    pieces.write(character);
    await new Promise((resolve) => setImmediate(resolve));
  }
  pieces.end('in pieces');
  expect(await text(pieces)).toBe('OK\nin pieces');
  const atOnce = connect({ path: socketPath });
  atOnce.end(`${port}\nat once`);
  expect(await text(atOnce)).toBe('OK\nat once');
});

test('a port without a listener is reported as ECONNREFUSED', async () => {
  const socket = connect({ path: socketPath });
  socket.write(`${await freePort()}\n`);
  expect(await text(socket)).toBe('ERR ECONNREFUSED\n');
});

test.for(['0\n', '65536\n', '-1\n', '80.5\n', '\n', 'GET /', 'abc\n', '8080'])('%j is no valid port', async (asked) => {
  const socket = connect({ path: socketPath });
  socket.end(asked.endsWith('\n') || asked.length >= 6 ? asked : `${asked}garbage`);
  expect(await text(socket)).toBe('ERR EINVAL\n');
});

test('a client that disconnects ends its connection to the program', async () => {
  let ended = false;
  const port = await listen((socket) => {
    socket.on('error', () => undefined);
    socket.once('close', () => (ended = true));
    // The end may come as FIN: a socket that is not read does not see it.
    socket.resume().on('end', () => socket.destroy());
    socket.write('x'.repeat(1_000_000));
  });
  const socket = connect({ path: socketPath });
  socket.write(`${port}\n`);
  await once(socket, 'data');
  socket.destroy();
  expect(await waitFor('the end', () => ended)).toBe(true);
});

test('a client that does not read slows the program instead of filling memory', async () => {
  let written = 0;
  const port = await listen((socket) => {
    socket.on('error', () => undefined);
    const fill = (): void => {
      while (written < 100_000_000 && socket.write(Buffer.alloc(65_536))) written += 65_536;
    };
    socket.on('drain', fill);
    fill();
  });
  const socket = connect({ path: socketPath });
  socket.pause();
  socket.write(`${port}\n`);
  let before = 0;
  const isHeldUp = (): boolean => {
    const isSame = written > 0 && written === before;
    before = written;
    return isSame;
  };
  await waitFor('no more to be written', isHeldUp, { everyMs: 500 });
  expect(written).toBeLessThan(20_000_000);
  socket.destroy();
});

test('a second forwarder replaces the socket without a gap', async () => {
  const port = await listen((socket) => socket.end('here'));
  const [first] = children;
  await startForwarder();
  first?.kill('SIGKILL');
  const socket = connect({ path: socketPath });
  socket.write(`${port}\n`);
  expect(await text(socket)).toBe('OK\nhere');
});
