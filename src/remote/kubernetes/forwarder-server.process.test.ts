import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { Duplex, PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { localPods } from '../../../test/support/local-pods.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { homePaths } from '../../shared/paths.ts';
import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { ForwardedTunnels } from './forwarder-server.ts';
import type { TunnelEnd } from '../tunnel-records.ts';
import { forwarderFiles } from './forwarder-files.ts';

const recordOfPod = '0123456789';

/** Runs tunnels of a Kubernetes cluster whose API returns these streams. */
async function withTunnel(
  open: () => Promise<Duplex>,
  use: (
    socket: string,
    world: {
      readonly clock: FakeClock;
      readonly failures: string[];
      readonly tunnels: ForwardedTunnels;
      /** The same tunnels, as a second forwarder has them. */
      readonly another: () => ForwardedTunnels;
      readonly pods: Map<string, string>;
      /** From now on counts GET requests and answers them only once they are released. */
      readonly holdGets: () => { readonly asked: () => number; readonly release: () => void };
      /** Writes the record of the tunnel, with others around it if given, or removes it. */
      readonly record: (isPresent: boolean, around?: readonly string[]) => void;
    },
  ) => Promise<void>,
  { to = 80, exec }: { readonly to?: TunnelEnd; readonly exec?: KubeApi['exec'] } = {},
): Promise<void> {
  await withTempHome(async (home) => {
    const { records, socketDir } = forwarderFiles(homePaths(home, process.getuid?.() ?? 0), 'context');
    mkdirSync(socketDir, { recursive: true });
    const socket = records.socket(recordOfPod, to);
    const record = (isPresent: boolean, [before, after]: readonly string[] = []): void => {
      const sockets = [before, socket, after].filter((one) => one !== undefined);
      if (!isPresent) records.remove(recordOfPod);
      else
        records.write(recordOfPod, { tunnels: sockets.map((one) => ({ socket: one, to })), route: { pod: { namespace: 'n', name: 'p' } } });
    };
    record(true);
    const clock = new FakeClock();
    const failures: string[] = [];
    const path = '/api/v1/namespaces/n/pods/p';
    const pods = new Map([[path, '{}']]);
    let gets = 0;
    let held = Promise.resolve();
    const get = async <T extends KubeObject>(asked: string): Promise<T | undefined> => {
      gets += 1;
      await held;
      return JSON.parse(pods.get(asked) ?? 'null') ?? undefined;
    };
    const holdGets = (): { readonly asked: () => number; readonly release: () => void } => {
      const { promise, resolve: release } = Promise.withResolvers<void>();
      held = promise;
      return { asked: () => gets, release };
    };
    const api = { ...localPods().api, ...(exec === undefined ? {} : { exec }), portForward: open, get };
    const onFailure = (_tunnel: unknown, message: string): void => void failures.push(message);
    const another = (): ForwardedTunnels => new ForwardedTunnels({ records, api: () => Promise.resolve(api), clock, onFailure });
    const tunnels = another();
    try {
      await tunnels.syncAll();
      await use(socket, { clock, failures, tunnels, another, pods, holdGets, record });
    } finally {
      await tunnels.close();
    }
  });
}

test('a stream that fails immediately ends the connection and is reported once', () =>
  withTunnel(
    () => {
      const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
      stream.on('error', () => undefined);
      stream.destroy(new Error('connection refused'));
      return Promise.resolve(stream);
    },
    async (socket, { failures }) => {
      for (let round = 0; round < 3; round += 1) {
        const client = connect({ path: socket });
        client.write('GET / HTTP/1.1\r\n\r\n');
        expect(await buffer(client)).toHaveLength(0);
      }
      expect(failures).toEqual(['connection refused']);
    },
  ));

test('a client that does not read slows the sender instead of filling memory', async () => {
  let given = 0;
  const stream = new Duplex({
    read() {
      given += 65_536;
      this.push(Buffer.alloc(65_536));
    },
    write: (_chunk, _encoding, done) => done(),
  });
  await withTunnel(
    () => Promise.resolve(stream),
    async (socket) => {
      const client = connect({ path: socket });
      await waitFor('bytes to come', () => client.readableLength > 0);
      let before = -1;
      await waitFor(
        'the sender to stop',
        () => {
          const isSame = before === given;
          before = given;
          return isSame;
        },
        { everyMs: 200 },
      );
      expect(given).toBeLessThan(8_000_000);
      client.destroy();
      await waitFor('the stream to be closed', () => stream.destroyed);
    },
  );
});

test('a half-closed client still receives data and is closed after two quiet seconds', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('answer'));
  }).listen(0, '127.0.0.1');
  await waitFor('the server', () => server.listening);
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const stream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await withTunnel(
    () => Promise.resolve(stream),
    async (socket, { clock }) => {
      const client = connect({ path: socket, allowHalfOpen: true });
      client.end('question');
      expect(String(await new Promise((resolve) => client.once('data', resolve)))).toBe('answer');
      await waitFor('time to count', async () => {
        await clock.advance(2_001);
        return stream.destroyed;
      });
      await waitFor('the client to be disconnected', () => client.readableEnded || client.destroyed);
      client.destroy();
    },
  );
  server.close();
});

/** Commands in a pod that echo their input and end as connections to a Kubernetes cluster do. */
function echoes(): { readonly exec: KubeApi['exec']; readonly open: Set<Duplex>; readonly fail: () => void } {
  const open = new Set<Duplex>();
  let failing = false;
  const exec: KubeApi['exec'] = async () => {
    const { promise: ended, resolve } = Promise.withResolvers<{
      readonly exitCode: number | undefined;
      readonly message: string | undefined;
    }>();
    const stdio = new PassThrough({
      allowHalfOpen: false,
      // Reported at the moment of the destroy, as `KubeApi.exec` does.
      destroy: (error, done) => {
        resolve({ exitCode: undefined, message: 'the connection was closed here' });
        done(error);
      },
    });
    open.add(stdio);
    stdio.once('close', () => open.delete(stdio));
    if (failing) {
      resolve({ exitCode: 1, message: 'exit code 1' });
      stdio.end();
    }
    return { stdio, stderr: new PassThrough(), canCloseInput: false, ended, holdProcess: () => undefined, close: () => stdio.destroy() };
  };
  return { exec, open, fail: () => (failing = true) };
}

test('a client disconnect is no tunnel failure, but the end of its relay is', async () => {
  const { exec, open, fail } = echoes();
  await withTunnel(
    () => Promise.reject(new Error('nobody forwards')),
    async (socket, { clock, failures }) => {
      for (const disconnect of [(client: Socket) => client.destroy(), (client: Socket) => client.end()]) {
        const client = connect({ path: socket, allowHalfOpen: true });
        client.write('hello');
        expect(String(await new Promise((resolve) => client.once('data', resolve)))).toBe('hello');
        expect(open.size).toBe(1);
        disconnect(client);
        await waitFor('the relay to be ended', async () => {
          await clock.advance(2_001);
          return open.size === 0;
        });
        client.destroy();
      }
      expect(failures).toEqual([]);
      fail();
      expect(await buffer(connect({ path: socket }))).toHaveLength(0);
      expect(failures).toEqual(['exit code 1']);
    },
    { to: '/run/pod.sock', exec },
  );
});

test('a check for removed pods does not start while another one runs', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (_socket, { tunnels, holdGets }) => {
      const { asked, release } = holdGets();
      const first = tunnels.removeGone();
      await waitFor('the first request', () => asked() === 1);
      await tunnels.removeGone();
      expect(asked()).toBe(1);
      release();
      await first;
      await tunnels.removeGone();
      expect(asked()).toBe(2);
    },
  ));

test('a tunnel is removed when its pod no longer exists', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { tunnels, pods }) => {
      await tunnels.removeGone();
      expect({ count: tunnels.count, isThere: existsSync(socket) }).toEqual({ count: 1, isThere: true });
      pods.clear();
      await tunnels.removeGone();
      expect({ count: tunnels.count, isThere: existsSync(socket) }).toEqual({ count: 0, isThere: false });
      await tunnels.syncAll();
      expect(tunnels.count).toBe(0);
    },
  ));

test('concurrent requests for the same tunnel open one listener, which closes with the tunnel', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { tunnels, record }) => {
      record(false);
      await tunnels.sync(recordOfPod);
      record(true);
      await Promise.all([tunnels.sync(recordOfPod), tunnels.sync(recordOfPod), tunnels.sync(recordOfPod)]);
      // A second listener on the socket could neither be reached nor closed any more.
      const listening = readFileSync('/proc/net/unix', 'utf8')
        .split('\n')
        .filter((line) => line.includes(socket));
      expect({ count: tunnels.count, listening: listening.length }).toEqual({ count: 1, listening: 1 });
      record(false);
      await tunnels.sync(recordOfPod);
      expect({ count: tunnels.count, isThere: existsSync(socket) }).toEqual({ count: 0, isThere: false });
    },
  ));

test('a closing forwarder keeps the socket files of its successor', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { tunnels, another }) => {
      const next = another();
      await next.syncAll();
      await tunnels.close();
      expect(await buffer(connect({ path: socket }))).toHaveLength(0);
      await next.close();
      expect(existsSync(socket)).toBe(false);
    },
  ));

test('a failed sync is reported to its caller, and the next sync retries', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { tunnels, record }) => {
      record(false);
      await tunnels.sync(recordOfPod);
      record(true);
      // A folder that cannot be replaced occupies the socket's path.
      mkdirSync(socket);
      await expect(tunnels.sync(recordOfPod)).rejects.toThrow(/directory/);
      rmSync(socket, { recursive: true });
      await tunnels.sync(recordOfPod);
      expect(tunnels.count).toBe(1);
    },
  ));

test('a tunnel that cannot listen does not affect other tunnels', () =>
  withTunnel(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { tunnels, failures, record }) => {
      record(false);
      await tunnels.syncAll();
      const others = [join(dirname(socket), 'before'), join(dirname(socket), 'after')];
      mkdirSync(socket);
      record(true, others);
      await tunnels.syncAll();
      expect({ count: tunnels.count, failures }).toEqual({ count: 2, failures: [expect.stringMatching(/directory/)] });
      expect(others.every((other) => existsSync(other))).toBe(true);
      rmSync(socket, { recursive: true });
    },
  ));

test('a reopened tunnel reports its first failure again', () =>
  withTunnel(
    () => Promise.reject(new Error('connection refused')),
    async (socket, { failures, tunnels, record }) => {
      await buffer(connect({ path: socket }));
      for (const isPresent of [false, true]) {
        record(isPresent);
        await tunnels.sync(recordOfPod);
      }
      await buffer(connect({ path: socket }));
      expect(failures).toEqual(['connection refused', 'connection refused']);
    },
  ));
