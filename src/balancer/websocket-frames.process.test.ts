import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { aBalancerReplica, sharedBalancer } from '../../test/support/balancer.ts';
import { RawClient, rawReplica, withReplicas } from '../../test/support/raw-http.ts';
import { waitFor } from '../../test/support/wait-for.ts';

/** Opcodes of RFC 6455, section 5.2. */
const [continuation, text, binary, close, ping, pong] = [0x0, 0x1, 0x2, 0x8, 0x9, 0xa];
const [final, reserved] = [0x80, 0x40];

interface FrameOptions {
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  readonly hasReservedBit?: boolean;
  /** Bytes of the length field; 1, 2 or 8. Default: as few as possible. */
  readonly lengthBytes?: number;
}

/** Its length is no power of two, so no piece of a stream equals another one by chance. */
const pattern = Buffer.from(Array.from({ length: 251 }, (_, index) => (index * 7) % 256));
const someBytes = (count: number): Buffer => Buffer.alloc(count, pattern);

/** One frame. The payload of a masked one is any bytes, so it need not be masked first. */
function frame(opcode: number, payload: string | Buffer, options: FrameOptions = {}): Buffer {
  const body = Buffer.from(payload);
  const fewest = body.length < 126 ? 1 : body.length < 65_536 ? 2 : 8;
  const { isFinal = true, isMasked = true, hasReservedBit = false, lengthBytes = fewest } = options;
  const length = Buffer.alloc(lengthBytes === 1 ? 1 : lengthBytes + 1);
  length[0] = (isMasked ? 0x80 : 0) | (lengthBytes === 1 ? body.length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) length.writeUInt16BE(body.length, 1);
  if (lengthBytes === 8) length.writeBigUInt64BE(BigInt(body.length), 1);
  const first = (isFinal ? final : 0) | (hasReservedBit ? reserved : 0) | opcode;
  return Buffer.concat([Buffer.from([first]), length, isMasked ? someBytes(4) : Buffer.alloc(0), body]);
}

const closing = (code: number, reason = ''): Buffer => Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]);
const part = { isFinal: false };

/** What each side sends. The balancer must change nothing, also where the peer will end the connection for it. */
const cases: readonly (readonly [what: string, frames: (options?: FrameOptions) => readonly Buffer[]])[] = [
  ['empty messages', (side) => [frame(text, '', side), frame(binary, '', side)]],
  [
    'lengths at the borders of the length field',
    (side) => [125, 126, 127, 65_535, 65_536].map((length) => frame(binary, someBytes(length), side)),
  ],
  ['lengths in more bytes than needed', (side) => [2, 8].map((lengthBytes) => frame(text, 'hello', { ...side, lengthBytes }))],
  ['a frame of 4 MiB', (side) => [frame(binary, someBytes(4_194_304), side)]],
  [
    'a message in three fragments',
    (side) => [frame(text, 'a', { ...side, ...part }), frame(continuation, 'b', { ...side, ...part }), frame(continuation, 'c', side)],
  ],
  ['pings between fragments', (side) => [frame(text, 'a', { ...side, ...part }), frame(ping, 'now', side), frame(continuation, 'b', side)]],
  [
    'empty fragments',
    (side) => [frame(text, '', { ...side, ...part }), frame(continuation, '', { ...side, ...part }), frame(continuation, '', side)],
  ],
  [
    'a thousand fragments of one byte',
    (side) => [
      frame(text, 'a', { ...side, ...part }),
      ...Array.from({ length: 998 }, () => frame(continuation, 'a', { ...side, ...part })),
      frame(continuation, 'a', side),
    ],
  ],
  ['a ping with the longest payload', (side) => [frame(ping, someBytes(125), side)]],
  ['a pong without a ping', (side) => [frame(pong, 'unasked', side)]],
  [
    'UTF-8 cut within a character',
    (side) => [frame(text, Buffer.from([0xc3]), { ...side, ...part }), frame(continuation, Buffer.from([0xa4]), side)],
  ],
  ['invalid UTF-8', (side) => [frame(text, Buffer.from([0xff, 0xfe, 0xc0]), side)]],
  ['a reserved bit', (side) => [frame(text, 'compressed', { ...side, hasReservedBit: true })]],
  ['reserved opcodes', (side) => [3, 7, 0xb, 0xf].map((opcode) => frame(opcode, 'x', side))],
  ['a ping above the limit', (side) => [frame(ping, someBytes(126), side)]],
  ['a fragmented ping', (side) => [frame(ping, 'a', { ...side, ...part })]],
  ['a continuation of nothing', (side) => [frame(continuation, 'a', side)]],
  ['the wrong masking', (side) => [frame(text, 'hello', { ...side, isMasked: side?.isMasked === false })]],
  ['a close without a code', (side) => [frame(close, '', side)]],
  [
    'every close code of the standard',
    (side) => [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999].map((code) => frame(close, closing(code, 'why'), side)),
  ],
  [
    'close codes that no endpoint may send',
    (side) => [0, 999, 1004, 1005, 1006, 1015, 65_535].map((code) => frame(close, closing(code), side)),
  ],
  ['a close with half a code', (side) => [frame(close, Buffer.from([3]), side)]],
  ['data after a close', (side) => [frame(close, closing(1000), side), frame(text, 'late', side)]],
  ['bytes that are no frames', () => [Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'), Buffer.alloc(300)]],
];

const upgrade =
  'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';
const switching =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
const afterHead = (received: string): string => received.slice(received.indexOf('\r\n\r\n') + 4);

const withBalancer = sharedBalancer();

interface Tunnel {
  readonly client: RawClient;
  /** The replica's end, and the bytes that it got after the head. Latin-1. */
  readonly replica: { readonly socket: Socket; readonly received: string };
}

/** Opens a tunnel. `early`: what each side sends together with its head. */
async function withTunnel(
  use: (tunnel: Tunnel) => Promise<void>,
  early: { readonly client?: Buffer; readonly replica?: Buffer } = {},
): Promise<void> {
  let end: Tunnel['replica'] | undefined;
  const replica = rawReplica((socket, received) => {
    if (end === undefined && received.includes('\r\n\r\n'))
      socket.write(Buffer.concat([Buffer.from(switching), early.replica ?? Buffer.alloc(0)]));
    end = { socket, received: afterHead(received) };
  });
  await withReplicas([replica], async (one) => {
    await withBalancer([aBalancerReplica(one?.port ?? 0)], async (balancer) => {
      const client = new RawClient(balancer.port).send(upgrade + (early.client?.toString('latin1') ?? ''));
      try {
        await client.until(/^HTTP\/1\.1 101 [^]*\r\n\r\n/);
        await use({
          client,
          get replica() {
            return end ?? expect.unreachable('The replica got a request before its answer.');
          },
        });
      } finally {
        client.destroy();
      }
    });
  });
}

/** Compares digests of length and place: a difference in megabytes would be unreadable. */
function expectSame(received: string, sent: Buffer): void {
  const bytes = Buffer.from(received, 'latin1');
  expect([bytes.length, bytes.equals(sent)]).toEqual([sent.length, true]);
}

test.each(cases)('%s pass unchanged in both directions', async (_what, frames) => {
  const fromClient = Buffer.concat(frames());
  const fromReplica = Buffer.concat(frames({ isMasked: false }));
  await withTunnel(async (tunnel) => {
    const { client } = tunnel;
    client.socket.write(fromClient);
    tunnel.replica.socket.write(fromReplica);
    await waitFor('the bytes of the client', () => tunnel.replica.received.length >= fromClient.length, { everyMs: 5 });
    await waitFor('the bytes of the replica', () => afterHead(client.received).length >= fromReplica.length, { everyMs: 5 });
    expectSame(tunnel.replica.received, fromClient);
    expectSame(afterHead(client.received), fromReplica);
  });
});

test('frames that arrive together with the heads pass unchanged', async () => {
  const early = { client: frame(text, 'early', { isMasked: true }), replica: frame(text, 'first', { isMasked: false }) };
  await withTunnel(async (tunnel) => {
    await waitFor('the frame of the client', () => tunnel.replica.received.length >= early.client.length, { everyMs: 5 });
    await waitFor('the frame of the replica', () => afterHead(tunnel.client.received).length >= early.replica.length, { everyMs: 5 });
    expectSame(tunnel.replica.received, early.client);
    expectSame(afterHead(tunnel.client.received), early.replica);
  }, early);
});

test('a frame passes byte by byte, without waiting for its end', async () => {
  const sent = frame(text, 'slow');
  await withTunnel(async (tunnel) => {
    for (let at = 0; at < sent.length; at += 1) {
      tunnel.client.socket.write(sent.subarray(at, at + 1));
      await waitFor('the byte', () => tunnel.replica.received.length === at + 1, { everyMs: 1 });
    }
    expectSame(tunnel.replica.received, sent);
  });
});

test('after a close handshake the end of either side reaches the other', async () => {
  for (const first of ['client', 'replica'] as const) {
    await withTunnel(async (tunnel) => {
      const { client } = tunnel;
      const [goodbye, answer] = [frame(close, closing(1000)), frame(close, closing(1000), { isMasked: false })];
      client.socket.write(goodbye);
      await waitFor('the close frame', () => tunnel.replica.received.length === goodbye.length, { everyMs: 5 });
      tunnel.replica.socket.write(answer);
      await waitFor('its answer', () => afterHead(client.received).length === answer.length, { everyMs: 5 });
      let hasEnded = false;
      tunnel.replica.socket.on('close', () => {
        hasEnded = true;
      });
      if (first === 'client') client.socket.end();
      else tunnel.replica.socket.end();
      await client.closed();
      expect(client.ended).toBe('end');
      if (first === 'client') await waitFor('the end at the replica', () => hasEnded, { everyMs: 5 });
      expectSame(afterHead(client.received), answer);
    });
  }
});
