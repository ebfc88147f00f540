import { statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { MetricsServer, type MetricsServerOptions } from './metrics-server.ts';
import { freePort } from '../../../test/support/free-port.ts';

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly connection: string | undefined;
  readonly text: string;
}

function ask(
  target: { readonly socketPath: string } | { readonly port: number },
  path: string,
  method = 'GET',
  accept = '*/*',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ ...target, host: '127.0.0.1', path, method, headers: { accept } }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('end', () => {
        const { 'content-type': type, connection } = response.headers;
        resolve({ status: response.statusCode ?? 0, type, connection, text });
      });
    });
    asked.on('error', reject);
    asked.end();
  });
}

async function withServers(
  use: (
    start: (changes?: Partial<MetricsServerOptions>) => Promise<MetricsServer>,
    socketPath: string,
    messages: string[],
  ) => Promise<void>,
): Promise<void> {
  await withTempHome(async (dir) => {
    const servers: MetricsServer[] = [];
    const messages: string[] = [];
    const log = (...news: readonly unknown[]): void => void messages.push(news.map((part) => JSON.stringify(part)).join(' '));
    const socketPath = join(dir, 'run', 'm.sock');
    const start = async (changes: Partial<MetricsServerOptions> = {}): Promise<MetricsServer> => {
      const logger = { info: log, warn: log, error: log };
      const server = new MetricsServer({
        socketPath,
        port: null,
        render: (format) => `in ${format}\n`,
        clock: systemClock,
        logger,
        ...changes,
      });
      servers.push(server);
      await server.start();
      return server;
    };
    try {
      await use(start, socketPath, messages);
    } finally {
      for (const server of servers) server.close();
    }
  });
}

test('the socket serves metrics to its owner only, in the requested format', async () => {
  await withServers(async (start, socketPath) => {
    const server = await start();
    expect(statSync(socketPath).mode & 0o777).toBe(0o600);
    expect(server.port).toBeUndefined();
    expect(await ask({ socketPath }, '/metrics')).toEqual({
      status: 200,
      type: 'text/plain; version=0.0.4; charset=utf-8',
      connection: 'close',
      text: 'in text\n',
    });
    expect(await ask({ socketPath }, '/metrics?x=1', 'GET', 'application/openmetrics-text')).toMatchObject({ text: 'in openmetrics\n' });
    expect(await ask({ socketPath }, '/healthz')).toMatchObject({ status: 200, text: 'ok\n' });
    expect(await ask({ socketPath }, '/metrics', 'HEAD')).toMatchObject({ status: 200, text: '' });
    expect(await ask({ socketPath }, '/metrics', 'POST')).toMatchObject({ status: 405 });
    expect(await ask({ socketPath }, '/')).toMatchObject({ status: 404 });
    server.close();
    expect(statSync(socketPath, { throwIfNoEntry: false })).toBeUndefined();
  });
});

test('a successor takes over the socket, and its predecessor leaves it there', async () => {
  await withServers(async (start, socketPath) => {
    const old = await start({ render: () => 'old' });
    await start({ render: () => 'new' });
    expect(await ask({ socketPath }, '/metrics')).toMatchObject({ text: 'new' });
    old.close();
    expect(await ask({ socketPath }, '/metrics')).toMatchObject({ text: 'new' });
  });
});

test('a busy port is reported once and taken as soon as it is free', async () => {
  await withServers(async (start, socketPath, messages) => {
    // Not one that the system may assign to another process between the two.
    const old = await start({ port: await freePort() });
    const port = old.port ?? 0;
    const other = await start({ port });
    expect(other.port).toBeUndefined();
    expect(messages.at(-1)).toContain(`Port ${port} for the metrics (load_balancer.metrics_port) is in use by another process`);
    expect(await ask({ socketPath }, '/healthz')).toMatchObject({ status: 200 });
    old.close();
    await waitFor('the port', () => other.port === port);
    expect(await ask({ port }, '/healthz')).toMatchObject({ status: 200 });
    expect(messages.filter((line) => line.includes('in use'))).toHaveLength(1);
  });
});

test('a socket that cannot be created is reported, not thrown', async () => {
  await withServers(async (start, socketPath, messages) => {
    writeFileSync(join(socketPath, '../..', 'file'), '');
    await start({ socketPath: join(socketPath, '../..', 'file', 'm.sock') });
    expect(messages).toEqual([expect.stringContaining('The metrics cannot be had at')]);
  });
});

test('silent connections block others only for seconds', async () => {
  await withServers(async (start, socketPath) => {
    await start();
    const silent = Array.from({ length: 32 }, () => connect(socketPath).on('error', () => undefined));
    try {
      // Node's own limit for a head is a minute.
      const asking = (): Promise<{ readonly status: number | undefined } | undefined> =>
        ask({ socketPath }, '/healthz').catch(() => undefined);
      const answer = await waitFor('an answer', asking, { everyMs: 250 });
      expect(answer.status).toBe(200);
    } finally {
      for (const socket of silent) socket.destroy();
    }
  });
});
