import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../test/support/wait-for.ts';
import { HandleTransport } from './handle-transport.ts';
import type { TransportUser } from './transport.ts';

/** Records the events of a transport. */
class Seen implements TransportUser {
  text = '';
  readonly events: string[] = [];

  received(bytes: Buffer): void {
    this.text += bytes.toString('latin1');
  }

  ended(): void {
    this.events.push('ended');
  }

  drained(): void {
    this.events.push('drained');
  }

  closed(): void {
    this.events.push('closed');
  }
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Both ends of one connection: a transport on the accepted socket, a plain socket at the other. */
async function pair(): Promise<{ readonly transport: HandleTransport; readonly seen: Seen; readonly peer: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  const accepted = once(server, 'connection');
  const peer = connect({ port: await listening(server), host: '127.0.0.1', allowHalfOpen: true });
  peer.on('error', () => undefined);
  onTestFinished(() => void peer.destroy());
  const [socket]: Socket[] = await accepted;
  if (socket === undefined) throw new Error('nothing was accepted');
  const transport = new HandleTransport(socket);
  onTestFinished(() => transport.destroy());
  const seen = new Seen();
  return { transport, seen, peer };
}

/** Collects what a socket gets. */
function collected(socket: Socket): { text: string } {
  const got = { text: '' };
  socket.on('data', (bytes: Buffer) => {
    got.text += bytes.toString('latin1');
  });
  return got;
}

test('text and bytes pass both ways in order', async () => {
  const { transport, seen, peer } = await pair();
  const got = collected(peer);
  transport.start(seen);
  transport.text('caf\u00e9 ');
  transport.bytes(Buffer.from('bytes '));
  transport.text('end');
  peer.write('hello');
  await waitFor('both', () => got.text === 'caf\u00e9 bytes end' && seen.text === 'hello');
  expect(transport.remoteAddress).toBe('127.0.0.1');
});

test('bytes that the peer does not read wait, and leave once it reads', async () => {
  const { transport, seen, peer } = await pair();
  peer.pause();
  transport.start(seen);
  const block = Buffer.alloc(1_048_576, 'x');
  let blocks = 0;
  while (!transport.isBlocked) {
    transport.bytes(block);
    blocks += 1;
  }
  transport.text('!');
  let bytes = 0;
  peer.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  peer.resume();
  await waitFor('all of it', () => bytes === blocks * block.length + 1);
  await waitFor('drained', () => seen.events.includes('drained'));
  expect(transport.isBlocked).toBe(false);
});

test('a paused transport reads nothing', async () => {
  const { transport, seen, peer } = await pair();
  transport.start(seen);
  transport.pause();
  peer.write('later');
  await new Promise((resolve) => {
    setTimeout(resolve, 50);
  });
  expect(seen.text).toBe('');
  transport.resume();
  await waitFor('the bytes', () => seen.text !== '');
  expect(seen.text).toBe('later');
});

test('the transport closes when both sides have ended', async () => {
  const { transport, seen, peer } = await pair();
  const got = collected(peer);
  transport.start(seen);
  const ended = once(peer, 'end');
  transport.text('bye');
  transport.end();
  await ended;
  expect({ text: got.text, events: seen.events }).toEqual({ text: 'bye', events: [] });
  peer.end();
  await waitFor('closed', () => seen.events.includes('closed'));
  expect(seen.events).toEqual(['ended', 'closed']);
});

test('after the peer has ended, writes still reach it', async () => {
  const { transport, seen, peer } = await pair();
  const got = collected(peer);
  transport.start(seen);
  peer.end('question');
  await waitFor('the end', () => seen.events.includes('ended'));
  transport.text('answer');
  transport.end();
  await waitFor('closed', () => seen.events.includes('closed'));
  await waitFor('the answer', () => got.text !== '');
  expect(got.text).toBe('answer');
});

test('a reset reaches the peer as a reset, after the written bytes', async () => {
  const { transport, seen, peer } = await pair();
  const got = collected(peer);
  transport.start(seen);
  const errors: string[] = [];
  peer.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''));
  transport.text('part');
  await waitFor('the part', () => got.text === 'part');
  transport.reset();
  await waitFor('the reset', () => errors.length > 0);
  expect(errors).toEqual(['ECONNRESET']);
  await waitFor('closed', () => seen.events.includes('closed'));
});

test('a peer that disconnects closes the transport once', async () => {
  const { transport, seen, peer } = await pair();
  transport.start(seen);
  peer.resetAndDestroy();
  await waitFor('closed', () => seen.events.length > 0);
  transport.text('into the void');
  transport.end();
  transport.destroy();
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  expect(seen.events).toEqual(['closed']);
});

test('bytes that arrived before the takeover are not lost', async () => {
  const server = createServer((socket) => socket.end('early'));
  const socket = connect({ port: await listening(server), host: '127.0.0.1' });
  await once(socket, 'connect');
  socket.pause();
  socket.unshift(Buffer.from('first '));
  const transport = new HandleTransport(socket);
  const seen = new Seen();
  transport.start(seen);
  await waitFor('the end', () => seen.events.includes('ended'));
  expect(seen.text).toBe('first early');
  transport.destroy();
});

test('probe() finds a reset while paused, and ignores a silent peer', async () => {
  const { transport, seen, peer } = await pair();
  transport.start(seen);
  transport.pause();
  transport.probe();
  peer.resetAndDestroy();
  await waitFor('closed', () => {
    transport.probe();
    return seen.events.includes('closed');
  });
  expect(seen.events).toEqual(['closed']);
});
