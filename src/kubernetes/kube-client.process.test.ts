import { beforeEach, expect, test, vi } from 'vitest';
import { failureOf } from '../../test/support/failure-of.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anObject, ScriptedApiServer, sendJson, sendStatus } from '../../test/support/scripted-api-server.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { SvcError } from '../shared/errors.ts';
import type { KubeObject } from './kube-api.ts';
import { kubeStatusOf } from './kube-errors.ts';

const path = '/api/v1/namespaces/default/configmaps/one';
const collection = '/api/v1/namespaces/default/configmaps';
const draft = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' } };
let server: ScriptedApiServer;

beforeEach(async () => {
  server = await ScriptedApiServer.start();
});

test('a missing object is undefined', async () => {
  expect(await server.open().get(path)).toBeUndefined();
  expect(await server.open().remove(path)).toBe(false);
  expect(await server.open().merge(path, {})).toBeUndefined();
});

test('a collection is read page by page', async () => {
  server.answer((request, response) => {
    const page = Number(request.url.searchParams.get('continue') ?? 0);
    const metadata = { resourceVersion: '7', ...(page < 2 ? { continue: String(page + 1) } : {}) };
    sendJson(response, { kind: 'ConfigMapList', metadata, items: [anObject(`o${page}`, '5')] });
  });
  const { items, resourceVersion } = await server.open().list(collection, { labels: { a: 'b' }, labelSelector: 'c' });
  expect(items.map((item) => item.metadata.name)).toEqual(['o0', 'o1', 'o2']);
  expect(resourceVersion).toBe('7');
  expect(server.seen.map((request) => request.url.searchParams.get('labelSelector'))).toEqual(['a=b,c', 'a=b,c', 'a=b,c']);
});

test('a list with an expired continue token is read in one request', async () => {
  server.answer((request, response) => {
    const { searchParams } = request.url;
    if (searchParams.has('continue')) sendStatus(response, 410, 'Expired');
    else if (searchParams.has('limit'))
      sendJson(response, { metadata: { resourceVersion: '7', continue: 'x' }, items: [anObject('a', '1')] });
    else sendJson(response, { metadata: { resourceVersion: '9' }, items: [anObject('a', '1'), anObject('b', '2')] });
  });
  const { items, resourceVersion } = await server.open().list(collection);
  expect(items.map((item) => item.metadata.name)).toEqual(['a', 'b']);
  expect(resourceVersion).toBe('9');
});

const keep = ({ metadata }: KubeObject): KubeObject => ({ metadata });

test('keep reduces each object of a list, paged or not', async () => {
  const item: Readonly<Record<string, unknown>> = { ...anObject('a', '1'), data: { long: 'text' } };
  server.answer((request, response) => {
    const { searchParams } = request.url;
    if (searchParams.has('continue')) sendStatus(response, 410, 'Expired');
    else sendJson(response, { metadata: { resourceVersion: '7', ...(searchParams.has('limit') && { continue: 'x' }) }, items: [item] });
  });
  expect((await server.open().list(collection, { keep })).items).toEqual([{ metadata: item['metadata'] }]);
  server.answer((_request, response) => sendJson(response, { metadata: { resourceVersion: '7' }, items: [item] }));
  expect((await server.open().list(collection, { keep })).items).toEqual([{ metadata: item['metadata'] }]);
});

test('an empty collection may have no items field', async () => {
  server.answer((_request, response) => sendJson(response, { metadata: { resourceVersion: '3' }, items: null }));
  expect(await server.open().list(collection)).toEqual({ items: [], resourceVersion: '3' });
});

test('a denied request is reported with verb, resource and namespace', async () => {
  server.answer((_request, response) =>
    sendStatus(
      response,
      403,
      'Forbidden',
      'configmaps is forbidden: User "me" cannot list resource "configmaps" in the namespace "default"',
    ),
  );
  const error = await failureOf(server.open().list(collection));
  expect(error.code).toBe('SVC_DENIED');
  expect(error.message).toBe(
    'The cluster test refuses to list configmaps in namespace default: configmaps is forbidden: User "me" cannot list resource "configmaps" in the namespace "default"',
  );
});

test("an invalid object fails once, with the server's message", async () => {
  server.answer((_request, response) => sendStatus(response, 422, 'Invalid', 'ConfigMap "one" is invalid: data: too long'));
  const error = await failureOf(server.open().apply(path, draft));
  expect(error.code).toBe('SVC_KUBERNETES');
  expect(error.message).toContain('did not apply configmaps one in namespace default: ConfigMap "one" is invalid: data: too long');
  expect(kubeStatusOf(error)).toMatchObject({ code: 422, reason: 'Invalid' });
  expect(server.seen).toHaveLength(1);
});

test('creating an existing object is undefined; a quota race is retried', async () => {
  server.answer((_request, response) => sendStatus(response, 409, 'AlreadyExists'));
  expect(await server.open().create(collection, draft)).toBeUndefined();
  let count = 0;
  server.answer((_request, response) => {
    count += 1;
    if (count < 3) sendStatus(response, 409, 'Conflict', 'Operation cannot be fulfilled on resourcequotas "q"');
    else sendJson(response, anObject('one', '4'), 201);
  });
  expect((await server.open().create(collection, draft))?.metadata.resourceVersion).toBe('4');
});

test('replacing a changed object is undefined and not retried', async () => {
  server.answer((_request, response) => sendStatus(response, 409, 'Conflict'));
  const object = { metadata: { name: 'one', uid: 'u', resourceVersion: '1' } };
  expect(await server.open().replace(path, object)).toBeUndefined();
  expect(server.seen).toHaveLength(1);
});

test('only the object with the given UID is removed', async () => {
  server.answer((_request, response) => sendStatus(response, 409, 'Conflict', 'the UID in the precondition does not match'));
  expect(await server.open().remove(path, { uid: 'u1', gracePeriodSeconds: 0 })).toBe(false);
  expect(JSON.parse(server.seen[0]?.body ?? '')).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid: 'u1' } });
});

test.each([429, 500, 503])('a read answered with %i is retried after the requested delay', async (code) => {
  let count = 0;
  server.answer((_request, response) => {
    count += 1;
    if (count === 1) sendStatus(response, code, 'Busy', 'busy', { 'retry-after': '2' });
    else sendJson(response, anObject('one', '4'));
  });
  const clock = new FakeClock();
  const pauses = vi.spyOn(clock, 'sleep');
  const result = server.open({ clock }).get(path);
  await waitFor('the pause', () => pauses.mock.calls.length === 1);
  await clock.advance(1_900);
  expect(server.seen).toHaveLength(1);
  await clock.advance(200);
  expect((await result)?.metadata.name).toBe('one');
});

test("a persistent server error is reported with the server's message", async () => {
  server.answer((_request, response) => sendStatus(response, 500, 'InternalError', 'etcdserver: no leader'));
  const error = await failureOf(server.open().get(path));
  expect(error.code).toBe('SVC_KUBERNETES');
  expect(error.kind).toBe('transient');
  expect(error.message).toBe('The cluster test did not get configmaps one in namespace default: etcdserver: no leader');
  expect(server.seen).toHaveLength(5);
});

test('an apply against the schema is not retried although the server reports 500', async () => {
  const said = 'failed to create typed patch object (default/one; /v1, Kind=ConfigMap): .nope: field not declared in schema';
  server.answer((_request, response) => sendStatus(response, 500, '', said));
  expect((await failureOf(server.open().apply(path, draft))).message).toContain(said);
  expect(server.seen).toHaveLength(1);
});

test('a creation that the server may have executed is not retried', async () => {
  server.answer((_request, response) => response.destroy());
  const error = await failureOf(server.open().create(collection, draft));
  expect(error.code).toBe('SVC_KUBERNETES');
  expect(server.seen).toHaveLength(1);
});

test('an apply is retried after a broken connection', async () => {
  let count = 0;
  server.answer((_request, response) => {
    count += 1;
    if (count === 1) response.destroy();
    else sendJson(response, anObject('one', '4'));
  });
  expect((await server.open().apply(path, draft, { dryRun: true })).metadata.name).toBe('one');
  expect(server.seen[1]?.url.searchParams.get('dryRun')).toBe('All');
  expect(server.seen[1]?.headers['content-type']).toBe('application/apply-patch+yaml');
});

test('an unreachable server is reported for every kind of request', async () => {
  const api = server.open();
  await server.stop();
  const error = await failureOf(api.create(collection, draft));
  expect(error.code).toBe('SVC_KUBERNETES');
  expect(error.message).toMatch(/^The API server of test does not answer \(to create configmaps in namespace default\): .*ECONNREFUSED/);
});

test('a request that the server never answers times out', async () => {
  server.answer(() => undefined);
  const clock = new FakeClock();
  const result = failureOf(server.open({ clock }).get(path));
  await waitFor('the request', () => server.seen.length === 1);
  await clock.advance(31_000);
  expect((await result).message).toContain('no answer within 30 s');
});

test('an answer that stalls halfway times out', async () => {
  server.answer((_request, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('{');
  });
  const clock = new FakeClock();
  let message = '';
  const result = failureOf(server.open({ clock }).get(path)).then((error) => (message = error.message));
  await waitFor('the request', () => server.seen.length === 1);
  await waitFor('the end of patience', async () => {
    await clock.advance(1_000);
    return message !== '';
  });
  expect(await result).toContain('stopped in its middle');
});

test('an answer that is not from Kubernetes is reported without its HTML', async () => {
  server.answer((_request, response) => {
    response.writeHead(200);
    response.end('<html>login here</html>');
  });
  expect((await failureOf(server.open().get(path))).message).toContain('what it sent is not what Kubernetes sends');
  server.answer((_request, response) => {
    response.writeHead(404);
    response.end('<html><body>no such <b>page</b></body></html>');
  });
  expect(await server.open().get(path)).toBeUndefined();
  expect((await failureOf(server.open().apply(path, draft))).message).toContain('HTTP 404: no such page');
});

test("a cancelled call fails with the signal's reason", async () => {
  server.answer(() => undefined);
  const abort = new AbortController();
  const result = server.open().get(path, { signal: abort.signal });
  await waitFor('the request', () => server.seen.length === 1);
  abort.abort(new Error('changed my mind'));
  await expect(result).rejects.toThrow('changed my mind');
});

test('a closed fence prevents sending, even on a connection that was being opened', async () => {
  const api = server.open({
    fence: {
      check: () => {
        throw new SvcError('SVC_NOT_LEADER', 'the lease has run out');
      },
    },
  });
  expect((await failureOf(api.get(path))).code).toBe('SVC_NOT_LEADER');
  expect((await failureOf(api.exec({ namespace: 'default', name: 'p' }, ['true']))).code).toBe('SVC_NOT_LEADER');
  expect(server.seen).toEqual([]);
});

test('sequential requests share a connection', async () => {
  server.answer((_request, response) => sendJson(response, anObject('one', '4')));
  const api = server.open();
  await api.get(path);
  await api.get(path);
  expect(server.connectionCount).toBe(1);
});

test('text is returned unchanged', async () => {
  server.answer((_request, response) => {
    response.writeHead(200);
    response.end('line 1\nline 2\n');
  });
  expect(await server.open().text(`${path}/log`, { query: { tailLines: '2' } })).toBe('line 1\nline 2\n');
  expect(server.seen[0]?.url.search).toBe('?tailLines=2');
});
