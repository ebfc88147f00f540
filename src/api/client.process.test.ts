import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { aClusterView, aHealth, anEventView, anUpdatePlan, aServiceView, withApi, type ServedApi } from '../../test/support/api.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { createClient, type ApiClient } from './client.ts';
import type { RouteRequest } from './contract.ts';
import type { RouteName } from './routes.ts';

const policy = { mode: 'canary' as const, surge: { percent: 25 } };
const source = { source: 'run: true\n', file: '/a.yaml', envs: { A: '1' }, secrets: { B: 'ü' } };

/** Returns and records its input. */
const seen: object[] = [];
function remember<Reply>(
  reply: Reply,
): (request: { readonly params?: unknown; readonly query?: unknown; readonly body?: unknown }) => Promise<Reply> {
  return async ({ params, query, body }) => {
    seen.push({ ...(params !== undefined && { params }), ...(query !== undefined && { query }), ...(body !== undefined && { body }) });
    return reply;
  };
}

async function* items<Item>(...all: readonly Item[]): AsyncGenerator<Item> {
  yield* all;
}

/** One call for each route: the reply that the client gets, and the request that the handler must receive. */
const trips: Readonly<
  Record<RouteName, { readonly go: (api: ServedApi) => Promise<unknown>; readonly gets: unknown; readonly given: object }>
> = {
  health: { go: ({ client }) => client.call('health'), gets: aHealth, given: {} },
  snapshotState: {
    go: ({ client }) => client.call('snapshotState'),
    gets: { folder: '/home/ann/.svc/uploads/backup-1', schema: 6, services: ['chat'], outside: [] },
    given: {},
  },
  stopController: {
    go: ({ client }) => client.call('stopController', { body: { keepServices: true } }),
    gets: { stopping: true },
    given: { body: { keepServices: true } },
  },
  listServices: { go: ({ client }) => client.call('listServices'), gets: { services: [aServiceView] }, given: {} },
  sweep: { go: ({ client }) => client.call('sweep'), gets: { removed: [], failed: [] }, given: {} },
  getService: {
    go: ({ client }) => client.call('getService', { params: { name: 'a/b ?&#é' } }),
    gets: aServiceView,
    given: { params: { name: 'a/b ?&#é' } },
  },
  createService: {
    go: ({ client }) => client.call('createService', { body: { name: 'chat', port: 1234, ...source } }),
    gets: { service: aServiceView },
    given: { body: { name: 'chat', port: 1234, ...source } },
  },
  terminateService: {
    go: ({ client }) => client.call('terminateService', { params: { name: 'chat' }, query: { purge: true } }),
    gets: { service: 'chat' },
    given: { params: { name: 'chat' }, query: { purge: true } },
  },
  updateService: {
    go: ({ client }) => client.call('updateService', { params: { name: 'chat' }, body: { policy, dryRun: true, ...source } }),
    gets: anUpdatePlan,
    given: { params: { name: 'chat' }, body: { policy, dryRun: true, ...source } },
  },
  listVersions: {
    go: ({ client }) => client.call('listVersions', { params: { name: 'chat' } }),
    gets: { versions: [] },
    given: { params: { name: 'chat' } },
  },
  serviceFile: {
    go: ({ client }) => client.call('serviceFile', { params: { name: 'chat' } }),
    gets: { source: 'run: serve', envs: { SIZE: '7b' }, secrets: ['TOKEN'] },
    given: { params: { name: 'chat' } },
  },
  rollbackService: {
    go: ({ client }) => client.call('rollbackService', { params: { name: 'chat' }, body: { to: 1 } }),
    gets: anUpdatePlan,
    given: { params: { name: 'chat' }, body: { to: 1, dryRun: false } },
  },
  pauseUpdate: {
    go: ({ client }) => client.call('pauseUpdate', { params: { name: 'chat' }, body: { paused: true } }),
    gets: { service: 'chat', version: 2, changed: true },
    given: { params: { name: 'chat' }, body: { paused: true } },
  },
  retryService: {
    go: ({ client }) => client.call('retryService', { params: { name: 'chat' } }),
    gets: { service: 'chat', refusals: 2 },
    given: { params: { name: 'chat' } },
  },
  explainService: {
    go: ({ client }) => client.call('explainService', { params: { name: 'chat' }, query: { id: 3, all: true } }),
    gets: { service: 'chat', replicas: [], plan: null },
    given: { params: { name: 'chat' }, query: { id: 3, all: true } },
  },
  terminateReplica: {
    go: ({ client }) => client.call('terminateReplica', { params: { name: 'chat', id: 3 } }),
    gets: { service: 'chat', replicaId: 3 },
    given: { params: { name: 'chat', id: 3 }, query: { purge: false } },
  },
  serviceEvents: {
    go: ({ client }) => collect(client.lines('serviceEvents', { params: { name: 'chat' }, query: { after: 1, follow: true } })),
    gets: [anEventView(2), anEventView(3, 'Zeile\nzwei – 二')],
    given: { params: { name: 'chat' }, query: { after: 1, follow: true } },
  },
  serviceLogs: {
    go: ({ client }) => textOf(client, 'chat'),
    gets: 'line 1\nline é\n',
    given: { params: { name: 'chat' }, query: { target: 'replica', id: 2, follow: false, tail: 0 } },
  },
  serviceMetrics: {
    go: async ({ client }) => Buffer.concat(await collect(client.text('serviceMetrics', { params: { name: 'chat' } }))).toString(),
    gets: 'one 1\n',
    given: { params: { name: 'chat' } },
  },
  listClusters: { go: ({ client }) => client.call('listClusters', {}), gets: { clusters: [aClusterView] }, given: {} },
  launch: {
    go: ({ client }) => client.call('launch', { body: { mode: 'exec', cluster: 'box', ...source } }),
    gets: { cluster: aClusterView, jobId: 1 },
    given: { body: { mode: 'exec', cluster: 'box', ...source } },
  },
  terminateCluster: {
    go: ({ client }) => client.call('terminateCluster', { params: { name: 'box' }, query: { purge: false } }),
    gets: { cluster: 'box' },
    given: { params: { name: 'box' }, query: { purge: false } },
  },
  clusterLogs: {
    go: async ({ client }) => Buffer.concat(await collect(client.text('clusterLogs', { params: { name: 'box' } }))).toString(),
    gets: 'out',
    given: { params: { name: 'box' }, query: { follow: false } },
  },
};

async function textOf(client: ApiClient, name: string): Promise<string> {
  const pieces = client.text('serviceLogs', { params: { name }, query: { target: 'replica', id: 2, tail: 0 } });
  return Buffer.concat(await collect(pieces)).toString();
}

async function collect<Item>(stream: AsyncIterable<Item>): Promise<readonly Item[]> {
  const all: Item[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

async function* failingHistory(): AsyncGenerator<ReturnType<typeof anEventView>> {
  yield anEventView(1);
  throw new SvcError('SVC_SERVICE_NOT_FOUND', 'It is gone.');
}

async function* failingLog(): AsyncGenerator<string> {
  yield 'beginning';
  throw new Error('read error');
}

async function* endlessLog({ signal }: RouteRequest<'serviceLogs'>): AsyncGenerator<string> {
  yield 'first';
  await systemClock.sleep(60_000, signal);
}

/** A call that ends only when it is aborted, with an error. */
function stuck({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('stopped')));
  });
}

test.for(Object.entries(trips))("%s sends its input and returns the handler's reply", async ([, { go, gets, given }]) => {
  seen.length = 0;
  await withApi(
    {
      health: remember(aHealth),
      snapshotState: remember({ folder: '/home/ann/.svc/uploads/backup-1', schema: 6, services: ['chat'], outside: [] }),
      stopController: remember({ stopping: true }),
      listServices: remember({ services: [aServiceView] }),
      sweep: remember({ removed: [], failed: [] }),
      getService: remember(aServiceView),
      createService: remember({ service: aServiceView }),
      terminateService: remember({ service: 'chat' }),
      updateService: remember(anUpdatePlan),
      listVersions: remember({ versions: [] }),
      serviceFile: remember({ source: 'run: serve', envs: { SIZE: '7b' }, secrets: ['TOKEN'] }),
      rollbackService: remember(anUpdatePlan),
      pauseUpdate: remember({ service: 'chat', version: 2, changed: true }),
      retryService: remember({ service: 'chat', refusals: 2 }),
      terminateReplica: remember({ service: 'chat', replicaId: 3 }),
      explainService: remember({ service: 'chat', replicas: [], plan: null }),
      serviceEvents: remember(items(anEventView(2), anEventView(3, 'Zeile\nzwei – 二'))),
      serviceLogs: remember(items<string | Uint8Array>('line 1\n', Buffer.from('line é\n'))),
      serviceMetrics: remember(items('one 1\n')),
      listClusters: remember({ clusters: [aClusterView] }),
      launch: remember({ cluster: aClusterView, jobId: 1 }),
      terminateCluster: remember({ cluster: 'box' }),
      clusterLogs: remember(items('out')),
    },
    async (api) => {
      expect(await go(api)).toEqual(gets);
      expect(seen).toEqual([given]);
    },
  );
});

test("a call throws the handler's error with its problems", async () => {
  const problems = [{ message: 'unknown field', file: '/a.yaml', line: 3, column: 1, excerpt: 'x', hint: 'Did you mean y?' }];
  const fail = (): Promise<never> =>
    Promise.reject(new SvcError('SVC_INVALID_TASK', 'The file has 1 problem.', { hint: 'Correct it.', problems }));
  await withApi({ createService: fail, serviceLogs: fail, serviceEvents: fail }, async ({ client }) => {
    const expected = {
      name: 'SvcError',
      code: 'SVC_INVALID_TASK',
      kind: 'invalid-input',
      message: 'The file has 1 problem.',
      hint: 'Correct it.',
      problems,
    };
    await expect(client.call('createService', { body: source })).rejects.toMatchObject(expected);
    await expect(textOf(client, 'chat')).rejects.toMatchObject(expected);
    await expect(collect(client.lines('serviceEvents', { params: { name: 'chat' } }))).rejects.toMatchObject(expected);
  });
});

test('a line stream that fails yields its lines, then throws the error', async () => {
  await withApi({ serviceEvents: failingHistory }, async ({ client }) => {
    const lines: number[] = [];
    const reading = (async () => {
      for await (const { id } of client.lines('serviceEvents', { params: { name: 'chat' } })) lines.push(id);
    })();
    await expect(reading).rejects.toMatchObject({ code: 'SVC_SERVICE_NOT_FOUND', message: 'It is gone.' });
    expect(lines).toEqual([1]);
  });
});

test('a text stream that fails is distinguished from one that ended', async () => {
  await withApi({ serviceLogs: failingLog }, async ({ client, logged }) => {
    await expect(textOf(client, 'chat')).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_UNREACHABLE',
      message: expect.stringContaining('went away before its answer was complete'),
    });
    expect(logged).toEqual(['read error']);
  });
});

test('a missing or ending controller is SVC_CONTROLLER_UNREACHABLE', async () => {
  await withTempHome(async (home) => {
    const client = createClient({ socketPath: join(home, 'none.sock') });
    await expect(client.call('health')).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_UNREACHABLE',
      message: `The controller at ${join(home, 'none.sock')} does not run.`,
    });
    await expect(textOf(client, 'chat')).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
  });
  await withRawServer(
    (request) => void request.socket.destroy(),
    async (client) => {
      await expect(client.call('health')).rejects.toMatchObject({
        code: 'SVC_CONTROLLER_UNREACHABLE',
        message: expect.stringContaining('went away before its answer was complete'),
      });
    },
  );
});

test('a timeout is an error with the call and the time', async () => {
  await withRawServer(
    () => undefined,
    async (client, socketPath) => {
      await expect(client.call('listServices', { timeoutMs: 50 })).rejects.toMatchObject({
        code: 'SVC_CONTROLLER_UNREACHABLE',
        message: `The controller at ${socketPath} did not answer "listServices" within 0.05 s.`,
      });
    },
  );
  // The head alone does not end the wait: the body must follow.
  await withRawServer(
    (_, response) => void response.writeHead(200, { 'x-svc-api-version': '1' }).write('{'),
    async (client) => {
      await expect(client.call('listServices', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'SVC_CONTROLLER_UNREACHABLE' });
    },
  );
});

test('another API version is an error with both versions, except for health', async () => {
  await withRawServer(
    (_, response) => void response.writeHead(200, { 'x-svc-api-version': '7', 'x-svc-version': '9.9.9' }).end('{"apiVersion":7}'),
    async (client) => {
      await expect(client.call('listServices')).rejects.toMatchObject({
        code: 'SVC_VERSION_MISMATCH',
        message: 'The running controller is of another version (9.9.9, API 7) than this command (API 1).',
      });
      expect(await client.call('health')).toEqual({ apiVersion: 7 });
    },
  );
});

test('an error with an unknown code keeps its message', async () => {
  const reply = JSON.stringify({ error: { code: 'SVC_NEW', message: 'Something new.', hint: 'Do that.', problems: [] } });
  await withRawServer(
    (_, response) => void response.writeHead(409, { 'x-svc-api-version': '1' }).end(reply),
    async (client) => {
      await expect(client.call('listServices')).rejects.toMatchObject({
        code: 'SVC_INTERNAL',
        message: 'Something new. (SVC_NEW)',
        hint: 'Do that.',
      });
    },
  );
});

test('a reply that is not from a controller is an error', async () => {
  for (const status of [200, 502]) {
    await withRawServer(
      (_, response) => void response.writeHead(status, { 'x-svc-api-version': '1' }).end('<html>'),
      async (client) => {
        await expect(client.call('listServices')).rejects.toMatchObject({
          code: 'SVC_CONTROLLER_UNREACHABLE',
          message: expect.stringContaining('cannot be understood'),
        });
      },
    );
  }
});

test('an abort rejects a call with its reason and ends a stream', async () => {
  await withApi({ serviceLogs: endlessLog, listServices: stuck }, async ({ client, logged }) => {
    const call = new AbortController();
    const calling = client.call('listServices', { signal: call.signal });
    call.abort(new Error('enough'));
    await expect(calling).rejects.toThrow('enough');
    await expect(client.call('listServices', { signal: call.signal })).rejects.toThrow('enough');

    const stream = new AbortController();
    const got: string[] = [];
    for await (const piece of client.text('serviceLogs', {
      params: { name: 'chat' },
      query: { target: 'controller', follow: true },
      signal: stream.signal,
    })) {
      got.push(piece.toString());
      stream.abort();
    }
    expect(got).toEqual(['first']);
    expect(logged).toEqual([]);
  });
});

test('importing the client loads neither a package nor undici', async () => {
  await withTempHome(async (home) => {
    const record = join(home, 'modules');
    const script = `
      await import(${JSON.stringify(new URL('client.ts', import.meta.url).href)});
      console.log(JSON.stringify(process.moduleLoadList.filter((name) => name.includes('undici/undici'))));`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', './test/architecture/record-modules.ts', '--input-type=module', '-e', script],
      { env: { ...process.env, SVC_TEST_MODULES: record } },
    );
    const loaded = readFileSync(record, 'utf8');
    expect(loaded).toContain('src/api/client.ts');
    expect(loaded).not.toContain('node_modules');
    expect(JSON.parse(stdout)).toEqual([]);
  });
});

/** Serves `listener` on a Unix socket. */
async function withRawServer(listener: RequestListener, use: (client: ApiClient, socketPath: string) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const socketPath = join(home, 'raw.sock');
    const server = createServer(listener);
    await new Promise<void>((resolve) => void server.listen(socketPath, resolve));
    try {
      await use(createClient({ socketPath }), socketPath);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
}
