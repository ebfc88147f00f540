import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aHealth, handlersWith } from '../../../test/support/api.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { serveApi } from '../../api/server.ts';
import { systemClock, type Clock } from '../../shared/clock.ts';
import { homePaths, type HomePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import type { LocalController } from './controller-connection.ts';
import { connectLocalController } from './local-controller-connection.ts';

const deps = { clock: systemClock, signal: new AbortController().signal, version: '1.2.3', say: () => undefined };

async function withConnection(
  use: (connection: LocalController, paths: HomePaths) => Promise<void>,
  clock: Clock = systemClock,
): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    prepareHome(paths);
    await use(connectLocalController(paths, { ...deps, clock }), paths);
  });
}

test('without a present or former controller, there is no connection', async () => {
  await withConnection(async (connection) => {
    expect([await connection.existing(), await connection.running()]).toEqual([undefined, undefined]);
  });
});

test('running() does not start a controller that left a database', async () => {
  await withConnection(async (connection, paths) => {
    writeFileSync(paths.database, '');
    expect(await connection.running()).toBeUndefined();
  });
});

test('existing() does not start a controller that left an idle mark', async () => {
  await withConnection(async (connection, paths) => {
    writeFileSync(paths.database, '');
    writeFileSync(paths.idleMark, '');
    expect(await connection.existing()).toBeUndefined();
    expect(existsSync(paths.controllerLog)).toBe(false);
  });
});

test.for(['client', 'existing', 'running'] as const)('%s() refuses an unusable home and starts nothing', async (method) => {
  await withConnection(async (connection, paths) => {
    chmodSync(paths.home, 0o777);
    await expect(connection[method](() => undefined)).rejects.toMatchObject({
      code: 'SVC_HOME_UNUSABLE',
      hint: `Run: chmod 700 ${paths.home}`,
    });
    const inFile = homePaths('/etc/passwd', process.getuid?.() ?? 0);
    const lost = connectLocalController(inFile, deps);
    await expect(lost[method](() => undefined)).rejects.toMatchObject({
      code: 'SVC_HOME_UNUSABLE',
      message: '/etc/passwd is not a folder.',
    });
    expect(existsSync(paths.controllerLog)).toBe(false);
  });
});

test('a running controller is connected', async () => {
  await withConnection(async (connection, { controllerSocket }) => {
    const log = { error: () => undefined, debug: () => undefined };
    const handlers = handlersWith({ health: async () => aHealth });
    const server = await serveApi({ socketPath: controllerSocket, handlers, log, clock: systemClock, version: '1.2.3' });
    try {
      for (const api of [await connection.running(), await connection.existing(), await connection.client(() => undefined)]) {
        expect(await api?.call('health')).toEqual(aHealth);
      }
    } finally {
      await server.close();
    }
  });
});

test('a controller that ends during the probe counts as not running', async () => {
  await withConnection(async (connection, { controllerSocket }) => {
    const dying = createServer((socket) => void socket.on('error', () => undefined).once('data', () => socket.destroy())).listen(
      controllerSocket,
    );
    await once(dying, 'listening');
    try {
      expect(await connection.running()).toBeUndefined();
    } finally {
      dying.close();
    }
  });
});

test('a listening controller that does not answer is an error', async () => {
  const fast: Clock = { ...systemClock, after: (ms, fire) => systemClock.after(ms / 50, fire) };
  await withConnection(async (connection, { controllerSocket }) => {
    const silent = createServer().listen(controllerSocket);
    await once(silent, 'listening');
    try {
      await expect(connection.client(() => undefined)).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
    } finally {
      silent.close();
    }
  }, fast);
});
