import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aHealth, handlersWith } from '../../test/support/api.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { serveApi } from '../api/server.ts';
import { systemClock, type Clock } from '../shared/clock.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { prepareHome } from '../shared/prepare-home.ts';
import { createHereConnection, type HereConnection } from './here-connection.ts';

async function withConnection(
  use: (connection: HereConnection, paths: HomePaths) => Promise<void>,
  clock: Clock = systemClock,
): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    prepareHome(paths);
    await use(createHereConnection(paths, clock, new AbortController().signal, '1.2.3'), paths);
  });
}

test('where no controller is or was there is nothing to talk to', async () => {
  await withConnection(async (connection) => {
    expect([await connection.existing(), await connection.running()]).toEqual([undefined, undefined]);
  });
});

test('a controller that has left its state behind is not started just to be stopped', async () => {
  await withConnection(async (connection, paths) => {
    writeFileSync(paths.database, '');
    expect(await connection.running()).toBeUndefined();
  });
});

test('a controller that has ended with nothing left is not started to look', async () => {
  await withConnection(async (connection, paths) => {
    writeFileSync(paths.database, '');
    writeFileSync(paths.idleMark, '');
    expect(await connection.existing()).toBeUndefined();
    expect(existsSync(paths.controllerLog)).toBe(false);
  });
});

test.for(['client', 'existing', 'running'] as const)('a home that cannot be one is told by %s, and nothing is started', async (way) => {
  await withConnection(async (connection, paths) => {
    chmodSync(paths.home, 0o777);
    await expect(connection[way]()).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE', hint: `Run: chmod 700 ${paths.home}` });
    const inFile = homePaths('/etc/passwd', process.getuid?.() ?? 0);
    const lost = createHereConnection(inFile, systemClock, new AbortController().signal, '1.2.3');
    await expect(lost[way]()).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE', message: '/etc/passwd is not a folder.' });
    expect(existsSync(paths.controllerLog)).toBe(false);
  });
});

test('a controller that runs is talked to', async () => {
  await withConnection(async (connection, { controllerSocket }) => {
    const log = { error: () => undefined, debug: () => undefined };
    const handlers = handlersWith({ health: async () => aHealth });
    const server = await serveApi({ socketPath: controllerSocket, handlers, log, clock: systemClock, version: '1.2.3' });
    try {
      for (const api of [await connection.running(), await connection.existing(), await connection.client()]) {
        expect(await api?.call('health')).toEqual(aHealth);
      }
    } finally {
      await server.close();
    }
  });
});

test('a controller that ends while it is asked whether it is there counts as none', async () => {
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

test('a controller that listens but does not answer is told, and none is started beside it', async () => {
  const fast: Clock = { ...systemClock, after: (ms, fire) => systemClock.after(ms / 50, fire) };
  await withConnection(async (connection, { controllerSocket }) => {
    const silent = createServer().listen(controllerSocket);
    await once(silent, 'listening');
    try {
      await expect(connection.client()).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
    } finally {
      silent.close();
    }
  }, fast);
});
