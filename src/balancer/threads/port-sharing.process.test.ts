import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { listenersIn, wasShared } from './port-sharing.ts';

const host = '127.0.0.1';

async function listen(port: number) {
  const server = createServer().listen({ host, port, reusePort: true });
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return { server, port: address.port };
}

/** Another process that listens at the port, sharing it. */
async function listenElsewhere(port: number) {
  const script = `require('node:net').createServer().listen({ host: '${host}', port: ${port}, reusePort: true }, function () { console.log(this.address().port) })`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said]: unknown[] = await once(child.stdout, 'data');
  return { child, port: Number(String(said)) };
}

test('a port that is ours alone is not shared, however many sockets of ours listen there', async () => {
  const first = await listen(0);
  const second = await listen(first.port);
  expect(wasShared(first.port)).toBe(false);
  first.server.close();
  second.server.close();
});

test('of two processes at one port the later one finds out', async () => {
  const { child, port } = await listenElsewhere(0);
  const { server } = await listen(port);
  try {
    expect(wasShared(port)).toBe(true);
  } finally {
    server.close();
    child.kill('SIGKILL');
  }
});

test('and the earlier one stays', async () => {
  const { server, port } = await listen(0);
  const { child } = await listenElsewhere(port);
  try {
    expect(wasShared(port)).toBe(false);
  } finally {
    server.close();
    child.kill('SIGKILL');
  }
});

test('where our own sockets are not seen nothing is claimed', async () => {
  const { child, port } = await listenElsewhere(0);
  expect(wasShared(port)).toBe(false);
  child.kill('SIGKILL');
});

test('only sockets that listen at that very port count', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0',
    '   1: 0100007F:7531 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0',
    '   2: 0100007F:7532 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0',
  ].join('\n');
  expect(listenersIn(table, 30_001)).toEqual([111]);
});
