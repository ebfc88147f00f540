import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { edgeProxyAccess } from '../../../test/support/edge-proxies.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { homePaths } from '../../shared/paths.ts';
import { admissionLimits, type AdmissionLimits } from './admission.ts';
import { EdgeProxyServer } from './edge-proxy-server.ts';
import { HostedServices } from './hosted-services.ts';
import { connectEdgeProxy } from './edge-proxy-connection.ts';
import { sharedKeyName, sharedKeyTls } from './shared-key.ts';
import { TermMemory } from './term-memory.ts';

const log = pino({ level: 'silent' });

interface World {
  readonly clock: FakeClock;
  readonly port: number;
  /** A connection from an address of this machine's loopback. */
  readonly stranger: (address?: string) => Promise<Socket>;
  readonly probe: () => Promise<string>;
  /** A controller that knows the token and has sent its hello. */
  readonly controller: () => Promise<TLSSocket>;
}

/** An edge proxy without services, with limits low enough for a test. */
async function withEdgeProxy(limits: Partial<AdmissionLimits>, use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const clock = new FakeClock();
    const { key } = edgeProxyAccess(dir);
    const sockets: Socket[] = [];
    const services = new HostedServices({ paths: homePaths(dir, 1000), address: '127.0.0.1', clock, log }, () => undefined);
    const terms = new TermMemory(join(dir, 'term'));
    const server = new EdgeProxyServer({
      key,
      services,
      terms,
      clock,
      log,
      isReady: () => true,
      limits: { ...admissionLimits, ...limits },
    });
    const port = await server.listen(0, '0.0.0.0');
    const stranger = async (localAddress = '127.0.0.1'): Promise<Socket> => {
      const socket = connectTcp({ host: '127.0.0.1', port, localAddress });
      sockets.push(socket.on('error', () => undefined));
      await once(socket, 'connect');
      return socket;
    };
    const probe = async (): Promise<string> => {
      const socket = await stranger();
      let answer = '';
      socket.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1'))).write('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n');
      await closed(socket);
      return answer.split('\r\n', 1)[0] ?? '';
    };
    const controller = async (): Promise<TLSSocket> => {
      const { socket } = await connectEdgeProxy({ name: 'host', host: '127.0.0.1', port }, { key, term: 1, clock });
      sockets.push(socket);
      return socket;
    };
    try {
      await use({ clock, port, stranger, probe, controller });
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });
}

const closed = (socket: Socket): Promise<boolean> => waitFor('a connection to be cut', () => socket.destroyed);

test('many silent connections block neither probes nor controllers', () =>
  withEdgeProxy({ strangers: 4 }, async ({ stranger, probe, controller }) => {
    const other = await stranger('127.0.0.9');
    const silent = [await stranger(), await stranger(), await stranger()];
    expect(await probe()).toBe('HTTP/1.1 200 OK');
    const first = silent[0];
    if (first !== undefined) await closed(first);
    const known = await controller();
    silent.push(await stranger(), await stranger(), await stranger());
    expect(await probe()).toBe('HTTP/1.1 200 OK');
    // A client that knows the token does not count as a stranger, and an address with few connections keeps them.
    expect([known.destroyed, other.destroyed]).toEqual([false, false]);
    await waitFor('all but four to be cut', () => silent.filter(({ destroyed }) => !destroyed).length <= 3);
  }));

test('authenticated clients have a limit; a closed connection frees its share', () =>
  withEdgeProxy({ known: 2 }, async ({ controller, probe }) => {
    const [first] = [await controller(), await controller()];
    await expect(controller()).rejects.toMatchObject({ code: 'SVC_ENDPOINT_DOWN' });
    expect(await probe()).toBe('HTTP/1.1 200 OK');
    first.destroy();
    await waitFor('room for another one', () =>
      controller().then(
        () => true,
        () => false,
      ),
    );
  }));

test('a stranger is disconnected at the time limit even when it sends slowly', () =>
  withEdgeProxy({}, async ({ clock, stranger, controller }) => {
    const known = await controller();
    const silent = await stranger();
    const beginsTls = await stranger();
    beginsTls.write(Buffer.from([22]));
    const beginsProbe = await stranger();
    beginsProbe.write('GET /healthz HTTP/1.1\r\n');
    const asked = await stranger();
    asked.write('GET /healthz HTTP/1.1\r\n\r\n');
    await once(asked.resume(), 'end');
    const strangers = [silent, beginsTls, beginsProbe];
    await clock.advance(admissionLimits.strangerMs - 1_000);
    expect([silent.destroyed, beginsTls.destroyed, known.destroyed]).toEqual([false, false, false]);
    await clock.advance(2_000);
    await Promise.all(strangers.map((socket) => closed(socket)));
  }));

test('a stranger that sends more than a handshake or probe is disconnected at once', () =>
  withEdgeProxy({ strangerMs: 3_600_000 }, async ({ clock, stranger, probe }) => {
    // The start of a TLS record that announces a long message, followed by an endless stream of bytes.
    const sender = await stranger();
    const record = Buffer.alloc(16_384 + 5, 1);
    record.set([22, 3, 1, 0x40, 0, 1, 1, 0, 0]);
    sender.write(Buffer.concat([record, record]));
    const talker = await stranger();
    talker.write(`GET /healthz HTTP/1.1\r\n${'X: y\r\n'.repeat(4_000)}`);
    await closed(talker);
    await waitFor('the bytes to be counted', async () => (await clock.advance(100), sender.destroyed));
    expect(await probe()).toBe('HTTP/1.1 200 OK');
  }));

test('a wrong token fails the handshake', () =>
  withEdgeProxy({}, async ({ port }) => {
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ...sharedKeyTls,
      pskCallback: () => ({ psk: Buffer.alloc(32), identity: sharedKeyName }),
      checkServerIdentity: () => undefined,
    });
    let isSecure = false;
    socket.on('secureConnect', () => (isSecure = true)).on('error', () => undefined);
    await closed(socket);
    expect(isSecure).toBe(false);
  }));
