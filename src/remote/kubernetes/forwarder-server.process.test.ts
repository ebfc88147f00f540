import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
import { ForwardedWays } from './forwarder-server.ts';
import { forwarderFiles, waySocket, type WayEnd } from './way-files.ts';

const recordOfPod = '0123456789';

/** Ways of a cluster whose API gives these streams. */
async function withWay(
  open: () => Promise<Duplex>,
  use: (
    socket: string,
    world: {
      readonly clock: FakeClock;
      readonly failures: string[];
      readonly ways: ForwardedWays;
      /** The same ways, as another forwarder has them. */
      readonly another: () => ForwardedWays;
      readonly pods: Map<string, string>;
      /** From now on questions are counted, and answered once they are released. */
      readonly holdGets: () => { readonly asked: () => number; readonly release: () => void };
      /** Writes down the way, between others if there are any, or forgets it. */
      readonly record: (isWanted: boolean, around?: readonly string[]) => void;
    },
  ) => Promise<void>,
  { to = 80, exec }: { readonly to?: WayEnd; readonly exec?: KubeApi['exec'] } = {},
): Promise<void> {
  await withTempHome(async (home) => {
    const files = forwarderFiles(homePaths(home, process.getuid?.() ?? 0), 'context');
    for (const dir of [files.records, files.socketDir]) mkdirSync(dir, { recursive: true });
    const socket = waySocket(files, recordOfPod, to);
    const file = join(files.records, recordOfPod);
    const record = (isWanted: boolean, [before, after]: readonly string[] = []): void => {
      const sockets = [before, socket, after].filter((one) => one !== undefined);
      if (!isWanted) rmSync(file, { force: true });
      else writeFileSync(file, JSON.stringify({ pod: { namespace: 'n', name: 'p' }, ways: sockets.map((one) => ({ socket: one, to })) }));
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
    const onFailure = (_way: unknown, message: string): void => void failures.push(message);
    const another = (): ForwardedWays => new ForwardedWays({ files, api: () => Promise.resolve(api), clock, onFailure });
    const ways = another();
    try {
      await ways.syncAll();
      await use(socket, { clock, failures, ways, another, pods, holdGets, record });
    } finally {
      await ways.close();
    }
  });
}

test('a stream that was refused together with its consent ends the connection, and is told once until one works', () =>
  withWay(
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

test('a client that does not read holds up the sender instead of filling memory', async () => {
  let given = 0;
  const stream = new Duplex({
    read() {
      given += 65_536;
      this.push(Buffer.alloc(65_536));
    },
    write: (_chunk, _encoding, done) => done(),
  });
  await withWay(
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
      await waitFor('the stream to be given up', () => stream.destroyed);
    },
  );
});

test('what still comes to a client that has no more to send gets through; after two quiet seconds it is given up', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('answer'));
  }).listen(0, '127.0.0.1');
  await waitFor('the server', () => server.listening);
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const stream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await withWay(
    () => Promise.resolve(stream),
    async (socket, { clock }) => {
      const client = connect({ path: socket, allowHalfOpen: true });
      client.end('question');
      expect(String(await new Promise((resolve) => client.once('data', resolve)))).toBe('answer');
      await waitFor('time to count', async () => {
        await clock.advance(2_001);
        return stream.destroyed;
      });
      await waitFor('the client to be parted with', () => client.readableEnded || client.destroyed);
      client.destroy();
    },
  );
  server.close();
});

/** Commands in a pod that send back what they get, and end as connections to a cluster do. */
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
      // Told in the very moment in which it is given up, as by `KubeApi.exec`.
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

test('that a client leaves is no failure of a way to a socket, and that its relay ends is', async () => {
  const { exec, open, fail } = echoes();
  await withWay(
    () => Promise.reject(new Error('nobody forwards')),
    async (socket, { clock, failures }) => {
      for (const leave of [(client: Socket) => client.destroy(), (client: Socket) => client.end()]) {
        const client = connect({ path: socket, allowHalfOpen: true });
        client.write('hello');
        expect(String(await new Promise((resolve) => client.once('data', resolve)))).toBe('hello');
        expect(open.size).toBe(1);
        leave(client);
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

test('a look for pods that are gone does not begin while the last one is under way', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (_socket, { ways, holdGets }) => {
      const { asked, release } = holdGets();
      const first = ways.removeGone();
      await waitFor('it to be asked', () => asked() === 1);
      await ways.removeGone();
      expect(asked()).toBe(1);
      release();
      await first;
      await ways.removeGone();
      expect(asked()).toBe(2);
    },
  ));

test('a way ends with its pod, whoever forgot to close it', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { ways, pods }) => {
      await ways.removeGone();
      expect({ count: ways.count, isThere: existsSync(socket) }).toEqual({ count: 1, isThere: true });
      pods.clear();
      await ways.removeGone();
      expect({ count: ways.count, isThere: existsSync(socket) }).toEqual({ count: 0, isThere: false });
      await ways.syncAll();
      expect(ways.count).toBe(0);
    },
  ));

test('two who ask for the same way at once get one, which ends with it', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { ways, record }) => {
      record(false);
      await ways.sync(recordOfPod);
      record(true);
      await Promise.all([ways.sync(recordOfPod), ways.sync(recordOfPod), ways.sync(recordOfPod)]);
      // Another one that listens could not be reached any more, nor ended.
      const listening = readFileSync('/proc/net/unix', 'utf8')
        .split('\n')
        .filter((line) => line.includes(socket));
      expect({ count: ways.count, listening: listening.length }).toEqual({ count: 1, listening: 1 });
      record(false);
      await ways.sync(recordOfPod);
      expect({ count: ways.count, isThere: existsSync(socket) }).toEqual({ count: 0, isThere: false });
    },
  ));

test('a forwarder that ends takes no file of the next one with it', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { ways, another }) => {
      const next = another();
      await next.syncAll();
      await ways.close();
      expect(await buffer(connect({ path: socket }))).toHaveLength(0);
      await next.close();
      expect(existsSync(socket)).toBe(false);
    },
  ));

test('a failed look at a way is told to who asked, and the next one looks again', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { ways, record }) => {
      record(false);
      await ways.sync(recordOfPod);
      record(true);
      // Something that cannot be put away is where the socket belongs.
      mkdirSync(socket);
      await expect(ways.sync(recordOfPod)).rejects.toThrow(/directory/);
      rmSync(socket, { recursive: true });
      await ways.sync(recordOfPod);
      expect(ways.count).toBe(1);
    },
  ));

test('a way that cannot be listened on takes no other one with it', () =>
  withWay(
    () => Promise.reject(new Error('nobody connects')),
    async (socket, { ways, failures, record }) => {
      record(false);
      await ways.syncAll();
      const others = [join(dirname(socket), 'before'), join(dirname(socket), 'after')];
      mkdirSync(socket);
      record(true, others);
      await ways.syncAll();
      expect({ count: ways.count, failures }).toEqual({ count: 2, failures: [expect.stringMatching(/directory/)] });
      expect(others.every((other) => existsSync(other))).toBe(true);
      rmSync(socket, { recursive: true });
    },
  ));

test('of a way that was closed nothing is remembered: when it is opened anew its first failure is told', () =>
  withWay(
    () => Promise.reject(new Error('connection refused')),
    async (socket, { failures, ways, record }) => {
      await buffer(connect({ path: socket }));
      for (const isWanted of [false, true]) {
        record(isWanted);
        await ways.sync(recordOfPod);
      }
      await buffer(connect({ path: socket }));
      expect(failures).toEqual(['connection refused', 'connection refused']);
    },
  ));
