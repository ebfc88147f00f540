import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aHealth, aServiceView, handlersWith } from '../../test/support/api.ts';
import { errorCodes, httpStatuses } from '../shared/error-codes.ts';
import { SvcError } from '../shared/errors.ts';
import { createApi } from './app.ts';
import type { RouteRequest } from './contract.ts';
import type { ApiHandlers } from './handlers.ts';

const body = { source: 'run: true', file: '/a.yaml', envs: {}, secrets: {} };

function api(given: Partial<ApiHandlers>): { readonly app: ReturnType<typeof createApi>; readonly logged: unknown[] } {
  const logged: unknown[] = [];
  const log = { error: (entry: unknown) => void logged.push(entry), debug: () => undefined };
  return { app: createApi(handlersWith(given), { log, clock: new FakeClock(), version: '1.2.3', checkReplies: true }), logged };
}

const post = (content: string): RequestInit => ({ method: 'POST', body: content, headers: { 'content-type': 'application/json' } });

test('a reply carries the versions of the API and of svc', async () => {
  const response = await api({ health: async () => aHealth }).app.request('/v1/health');
  expect([response.status, response.headers.get('x-svc-api-version'), response.headers.get('x-svc-version')]).toEqual([200, '1', '1.2.3']);
  expect(await response.json()).toEqual(aHealth);
});

test('a handler gets the parsed path, query and body with defaults', async () => {
  const requests: object[] = [];
  const { app } = api({
    terminateReplica: async ({ params, query }) => {
      requests.push({ params, query });
      return { service: params.name, replicaId: params.id };
    },
    createService: async (request) => {
      requests.push(request.body);
      return { service: aServiceView };
    },
  });
  await app.request('/v1/services/a%2Fb%20c/replicas/7?purge=true', { method: 'DELETE' });
  await app.request('/v1/services/chat/replicas/7', { method: 'DELETE' });
  await app.request('/v1/services', post(JSON.stringify(body)));
  expect(requests).toEqual([
    { params: { name: 'a/b c', id: 7 }, query: { purge: true } },
    { params: { name: 'chat', id: 7 }, query: { purge: false } },
    body,
  ]);
});

test('an error has the status of its kind, its code, hint and problems', async () => {
  const codes = ['SVC_USAGE', 'SVC_SERVICE_NOT_FOUND', 'SVC_NAME_IN_USE', 'SVC_CAPACITY', 'SVC_MACHINE_LOST', 'SVC_INTERNAL'] as const;
  for (const code of codes) {
    const { kind } = errorCodes[code];
    const problems = [{ message: 'm', file: 'f', line: 1, column: 2 }];
    const fail = (): never => {
      throw new SvcError(code, `It is ${kind}.`, { hint: 'Do this.', problems });
    };
    const response = await api({ listServices: fail }).app.request('/v1/services');
    expect(response.status).toBe(httpStatuses[kind]);
    expect(await response.json()).toEqual({ error: { code, message: `It is ${kind}.`, hint: 'Do this.', problems } });
  }
});

test('a bug becomes SVC_INTERNAL without its stack, and is logged', async () => {
  const bug = new Error('undefined is not a function');
  const { app, logged } = api({ listServices: () => Promise.reject(bug) });
  const response = await app.request('/v1/services');
  const text = await response.text();
  expect(response.status).toBe(500);
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'SVC_INTERNAL' } });
  expect(text).not.toContain('app.test.ts');
  expect(logged).toMatchObject([{ err: bug }]);
});

test('an expected failure is not logged', async () => {
  const { app, logged } = api({ listServices: () => Promise.reject(new SvcError('SVC_NO_PLACE', 'Nowhere.')) });
  await app.request('/v1/services');
  expect(logged).toEqual([]);
});

test('an unknown route and a wrong method are JSON errors', async () => {
  const { app } = api({});
  for (const [path, method] of [
    ['/nope', 'GET'],
    ['/v1/health', 'POST'],
  ] as const) {
    const response = await app.request(path, { method });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      error: { code: 'SVC_ROUTE_NOT_FOUND', message: `The control API has no route ${method} ${path}.` },
    });
  }
});

test('all mismatches with the contract are reported together, without the values', async () => {
  const { app } = api({});
  const response = await app.request(
    '/v1/services',
    post(JSON.stringify({ ...body, source: 3, secrets: { TOKEN: ['s3cret'] }, extra: 's3cret' })),
  );
  const text = await response.text();
  expect(response.status).toBe(400);
  expect(JSON.parse(text)).toMatchObject({
    error: {
      code: 'SVC_BAD_REQUEST',
      message:
        'The request "createService" does not fit its contract: body.source: Invalid input: expected string, received number; ' +
        'body.secrets.TOKEN: Invalid input: expected string, received array; body: Unrecognized key: "extra".',
    },
  });
  expect(text).not.toContain('s3cret');
});

test.for([
  '/v1/services/chat/logs?target=nobody',
  '/v1/services/chat/logs',
  '/v1/services/chat/logs?target=replica&tail=-1',
  '/v1/services/chat/events?x=1',
])('%s is refused', async (path) => {
  const response = await api({}).app.request(path);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: 'SVC_BAD_REQUEST' } });
});

test('an invalid or missing JSON body is refused and not quoted', async () => {
  for (const content of ['{"secrets": s3cret', '']) {
    const response = await api({}).app.request('/v1/services', post(content));
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'SVC_BAD_REQUEST' } });
    expect(text).not.toContain('s3cret');
  }
});

test('a body that is too large is refused, with or without Content-Length', async () => {
  const large = JSON.stringify({ ...body, source: 'x'.repeat(4 * 1024 * 1024) });
  const { app } = api({});
  const pieces = new ReadableStream({
    start(stream) {
      stream.enqueue(new TextEncoder().encode(large));
      stream.close();
    },
  });
  const undeclared = { method: 'POST', body: pieces, duplex: 'half', headers: { 'transfer-encoding': 'chunked' } } satisfies RequestInit;
  for (const init of [{ ...post(large), headers: { 'content-length': String(large.length) } }, undeclared]) {
    const response = await app.request('/v1/services', init);
    expect(await response.json()).toMatchObject({
      error: { code: 'SVC_BAD_REQUEST', message: 'The body of the request is larger than 4194304 bytes.' },
    });
  }
});

test('another API version is refused except by routes of any version', async () => {
  const stopped: RouteRequest<'stopController'>[] = [];
  const { app } = api({
    health: async () => aHealth,
    stopController: async (request) => {
      stopped.push(request);
      return { stopping: true };
    },
  });
  const headers = { 'x-svc-api-version': '2' };
  const refused = await app.request('/v1/services', { headers });
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ error: { code: 'SVC_VERSION_MISMATCH' } });
  expect((await app.request('/v1/health', { headers })).status).toBe(200);
  await app.request('/v1/controller/stop', { ...post('{"keepServices":true}'), headers });
  expect(stopped).toMatchObject([{ body: { keepServices: true } }]);
});

test('with checkReplies, a reply that breaks the contract is an error', async () => {
  const response = await api({ listServices: async () => ({ services: [{ ...aServiceView, version: 1.5 }] }) }).app.request('/v1/services');
  expect(response.status).toBe(500);
});
