import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aHealth, anEventView, handlersWith, withApi } from '../../test/support/api.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { createClient } from './client.ts';
import type { RouteReply, RouteRequest } from './contract.ts';
import { serveApi, type ApiServer } from './server.ts';

const log = { error: () => undefined, debug: () => undefined };

const serve = (socketPath: string, pid = 1): Promise<ApiServer> =>
  serveApi({
    socketPath,
    handlers: handlersWith({ health: async () => ({ ...aHealth, pid }) }),
    log,
    clock: systemClock,
    version: '1.2.3',
  });

async function* endlessHistory({ signal }: RouteRequest<'serviceEvents'>): AsyncGenerator<RouteReply<'serviceEvents'>> {
  yield anEventView(1);
  await systemClock.sleep(60_000, signal);
}

/** Creates the socket file of a process that was killed. */
async function createDeadSocket(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listening'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'close');
}

test('socket and folder are private whatever the umask; closing removes the socket', async () => {
  const before = process.umask(0);
  try {
    await withApi({}, async ({ socketPath, server }) => {
      expect(statSync(socketPath).mode & 0o777).toBe(0o600);
      expect(statSync(dirname(socketPath)).mode & 0o777).toBe(0o700);
      expect(readdirSync(dirname(socketPath))).toEqual(['api.sock']);
      await server.close();
      expect(readdirSync(dirname(socketPath))).toEqual([]);
    });
  } finally {
    process.umask(before);
  }
});

test("a dead controller's socket is replaced by exactly one of several servers", async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'api.sock');
    for (let round = 0; round < 5; round += 1) {
      await createDeadSocket(path);
      const outcomes = await Promise.allSettled([1, 2, 3].map((pid) => serve(path, pid)));
      const winners = outcomes.flatMap((outcome, index) =>
        outcome.status === 'fulfilled' ? [{ server: outcome.value, pid: index + 1 }] : [],
      );
      const losers = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      expect(winners).toHaveLength(1);
      expect(losers).toMatchObject([{ code: 'SVC_CONTROLLER_RUNNING' }, { code: 'SVC_CONTROLLER_RUNNING' }]);
      expect(await createClient({ socketPath: path }).call('health')).toMatchObject({ pid: winners[0]?.pid });
      await winners[0]?.server.close();
      expect(readdirSync(home)).toEqual([]);
    }
  });
});

test('a live controller keeps its socket', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'api.sock');
    const first = await serve(path, 7);
    await expect(serve(path)).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_RUNNING',
      message: `A controller answers on ${path} already.`,
    });
    expect(await createClient({ socketPath: path }).call('health')).toMatchObject({ pid: 7 });
    await first.close();
  });
});

test('a file that is not a socket is not removed', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'api.sock');
    writeFileSync(path, 'precious');
    await expect(serve(path)).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE' });
    expect(readdirSync(home)).toEqual(['api.sock']);
  });
});

test('closing does not remove the socket of a newer controller', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'api.sock');
    const old = await serve(path);
    rmSync(path);
    const next = createServer();
    await new Promise<void>((resolve) => void next.listen(path, resolve));
    await old.close();
    expect(existsSync(path)).toBe(true);
    next.close();
  });
});

test("when the client disconnects, the handler's signal aborts", async () => {
  const notified: string[] = [];
  const called = Promise.withResolvers<void>();
  async function* endless({ signal }: RouteRequest<'serviceLogs'>): AsyncGenerator<string> {
    try {
      yield 'first';
      await systemClock.sleep(60_000, signal);
    } finally {
      notified.push('stream');
    }
  }
  async function slow({ signal }: RouteRequest<'listServices'>): Promise<RouteReply<'listServices'>> {
    called.resolve();
    await systemClock.sleep(60_000, signal);
    notified.push('call');
    return { services: [] };
  }
  await withApi({ serviceLogs: endless, listServices: slow }, async ({ client, socketPath, logged }) => {
    for await (const _ of client.text('serviceLogs', { params: { name: 'chat' }, query: { target: 'controller', follow: true } })) break;
    await waitFor('the stream to end', () => notified.includes('stream'));

    const call = request({ socketPath, path: '/v1/services' });
    call.on('error', () => undefined);
    call.end();
    await called.promise;
    call.destroy();
    await waitFor('the call to end', () => notified.includes('call'));
    expect(logged).toEqual([]);
  });
});

test('a paused reader pauses the source and loses no bytes', async () => {
  const piece = Buffer.alloc(65_536, 'x');
  const total = 400;
  let produced = 0;
  async function* large(): AsyncGenerator<Uint8Array> {
    for (; produced < total; produced += 1) yield piece;
  }
  await withApi({ serviceLogs: large }, async ({ client }) => {
    const pieces = client.text('serviceLogs', { params: { name: 'chat' }, query: { target: 'controller' } })[Symbol.asyncIterator]();
    const first = await pieces.next();
    // Waits until the source is idle: from then on the bytes under way are in buffers.
    for (let before = -1; before !== produced; await sleep(200)) before = produced;
    expect(produced).toBeLessThan(total / 4);
    let bytes = first.value?.length ?? 0;
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) bytes += next.value.length;
    expect(bytes).toBe(total * piece.length);
  });
});

test('closing breaks off streams with an error and lets calls finish', async () => {
  const started = Promise.withResolvers<void>();
  async function slow(): Promise<RouteReply<'health'>> {
    started.resolve();
    await sleep(100);
    return aHealth;
  }
  await withApi({ serviceEvents: endlessHistory, health: slow }, async ({ client, server }) => {
    const lines = client.lines('serviceEvents', { params: { name: 'chat' }, query: { follow: true } })[Symbol.asyncIterator]();
    await lines.next();
    const call = client.call('health');
    await started.promise;
    await Promise.all([
      server.close(),
      expect(lines.next()).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' }),
      expect(call).resolves.toEqual(aHealth),
    ]);
    await expect(client.call('health')).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
  });
});

test('a handler that never ends does not block closing', async () => {
  const started = Promise.withResolvers<void>();
  const stuck = (): Promise<never> => {
    started.resolve();
    return new Promise<never>(() => undefined);
  };
  await withApi({ listServices: stuck }, async ({ client, server }) => {
    const call = client.call('listServices');
    await Promise.all([
      expect(call).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' }),
      started.promise.then(() => server.close()),
    ]);
  });
});
