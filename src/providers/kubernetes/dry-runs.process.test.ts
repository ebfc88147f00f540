import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { openKubernetesProvider } from '../../../test/support/kubernetes-provider.ts';
import { ScriptedApiServer, sendJson, sendStatus, type SeenRequest } from '../../../test/support/scripted-api-server.ts';
import { makeTempHome } from '../../../test/support/temp-home.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import type { KubernetesConfig } from '../../domain/config.ts';
import type { MachineSpec } from '../provider.ts';
import type { KubernetesProvider } from './index.ts';

let server: ScriptedApiServer;
let home: string;

/** Refusals by `METHOD path`, with a Kubernetes cluster's message. */
const refusals = new Map<string, { readonly code: number; readonly reason: string; readonly message: string }>();
const offer = anOffer({ provider: 'kubernetes', region: 'test', instanceType: '1CPU--2GB+' });
const pods = '/api/v1/namespaces/default/pods/';

/** The Kubernetes cluster has no nodes and no pods, and accepts everything that is not in `refusals`. */
function answer(request: SeenRequest, response: ServerResponse): void {
  const { method, url, body } = request;
  const refusal = [...refusals].find(([key]) => `${method} ${url.pathname}`.startsWith(key))?.[1];
  if (refusal !== undefined) return sendStatus(response, refusal.code, refusal.reason, refusal.message);
  if (method === 'GET' && /\/(?:pods|nodes)$/.test(url.pathname))
    return sendJson(response, { metadata: { resourceVersion: '1' }, items: [] });
  const sent = body === '' ? {} : parseJson(body);
  const metadata = isObject(sent) && isObject(sent['metadata']) ? sent['metadata'] : {};
  return sendJson(response, { ...(isObject(sent) ? sent : {}), metadata: { uid: 'u', resourceVersion: '1', ...metadata } });
}

beforeEach(async () => {
  home = makeTempHome();
  refusals.clear();
  server = await ScriptedApiServer.start(answer);
});
afterEach(() => {
  rmSync(home, { recursive: true, force: true });
});

const open = (config: Partial<KubernetesConfig> = {}): KubernetesProvider =>
  openKubernetesProvider({ kubeconfigs: [server.writeKubeconfig()], home, config });
const preflight = (provider: KubernetesProvider, spec: Partial<MachineSpec> = {}) => provider.preflight(offer, aMachineSpec(spec), {});
const changes = () => server.seen.filter(({ method }) => method !== 'GET');
const refuse = (key: string, code: number, reason: string, message: string) => refusals.set(key, { code, reason, message });

test('a preflight sends pod and anchor as dry runs and creates nothing', async () => {
  await preflight(open());
  // Both are sent at once.
  const shown = changes().map(({ method, url }) => `${method} ${url.pathname.split('/').at(-2)} ${url.searchParams.get('dryRun')}`);
  expect(shown.toSorted()).toEqual(['PATCH configmaps All', 'PATCH pods All']);
});

test.each([
  [
    'a class that does not exist',
    403,
    'Forbidden',
    'pods "p" is forbidden: no PriorityClass with name nope was found',
    'setup',
    'pod_config',
  ],
  [
    'a field that is none',
    500,
    '',
    'failed to create typed patch object (default/p; /v1, Kind=Pod): .spec.nope: field not declared in schema',
    'setup',
    'Correct',
  ],
  ['a quota', 403, 'Forbidden', 'pods "p" is forbidden: exceeded quota: few, requested: pods=1', 'quota', 'Ask for less'],
  ['a webhook', 400, 'BadRequest', 'admission webhook "policy.example.com" denied the request: no latest tags', 'setup', 'Correct'],
  [
    'a missing right',
    403,
    'Forbidden',
    'pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "default"',
    'permission',
    'svc check kubernetes --role | kubectl --context test apply -f -',
  ],
] as const)("%s is refused with the API server's message and a remedy", async (_, code, reason, message, refusal, hint) => {
  refuse(`PATCH ${pods}`, code, reason, message);
  await expect(preflight(open())).rejects.toMatchObject({
    refusal,
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  });
});

test('a missing right to create the anchor is refused', async () => {
  const message = 'configmaps "svc" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "default"';
  refuse('PATCH /api/v1/namespaces/default/configmaps/', 403, 'Forbidden', message);
  await expect(preflight(open())).rejects.toMatchObject({ refusal: 'permission' });
});

test('a missing volume claim or ConfigMap is refused with the command that lists them', async () => {
  refuse('GET /api/v1/namespaces/default/persistentvolumeclaims/models', 404, 'NotFound', 'not found');
  await expect(preflight(open(), { volumes: { '/data': 'models' } })).rejects.toMatchObject({
    refusal: 'setup',
    message: 'The cluster test has no PersistentVolumeClaim models in the namespace default, which the pod needs.',
    hint: expect.stringContaining('kubectl --context test -n default get persistentvolumeclaims'),
  });
  refuse('PATCH /api/v1/namespaces/default/configmaps/settings', 404, 'NotFound', 'not found');
  const podConfig = { spec: { containers: [{ envFrom: [{ configMapRef: { name: 'settings' } }] }] } };
  await expect(preflight(open({ podConfig }))).rejects.toMatchObject({ message: expect.stringContaining('no ConfigMap settings') });
  const request = server.seen.find(({ url }) => url.pathname.endsWith('/configmaps/settings'));
  expect([request?.body, request?.url.searchParams.get('dryRun')]).toEqual(['{}', 'All']);
});

test('unreadable references and webhooks without dry-run support are no refusals', async () => {
  refuse('GET /api/v1/namespaces/default/persistentvolumeclaims/', 403, 'Forbidden', 'User "u" cannot get resource');
  refuse(`PATCH ${pods}`, 400, 'BadRequest', 'admission webhook "audit.example.com" does not support dry run');
  await expect(preflight(open(), { volumes: { '/data': 'models' } })).resolves.toBeUndefined();
});

test('a connection that the server closes is a transient error, not a refusal', async () => {
  server.answer((_request, response) => response.destroy());
  await expect(preflight(open())).rejects.toMatchObject({ code: 'SVC_KUBERNETES', kind: 'transient' });
});

test('a refused dry run creates nothing, and an accepted description is sent once', async () => {
  const provider = open({ provisionTimeoutSeconds: 0 });
  const made = (key: string) => provider.create(offer, aMachineSpec({ tags: { 'svc-service-key': 'abcd', 'svc-key': key } }), key, {});
  refuse(`PATCH ${pods}`, 403, 'Forbidden', 'pods "p" is forbidden: no PriorityClass with name nope was found');
  await expect(made('k1')).rejects.toMatchObject({ refusal: 'setup' });
  expect(changes().filter(({ method, url }) => method === 'PATCH' && !url.searchParams.has('dryRun'))).toEqual([]);
  refusals.clear();
  // The test's server shows no pods, so neither ever has a node.
  for (const key of ['k2', 'k3']) await expect(made(key)).rejects.toMatchObject({ refusal: 'failed-launch' });
  const trials = changes().filter(({ url }) => url.searchParams.has('dryRun'));
  expect(trials).toHaveLength(2);
});

const lapse = (code: number, reason: string, message: string) => {
  for (const method of ['GET', 'PATCH', 'DELETE']) refuse(`${method} /api/v1/namespaces/default/pods`, code, reason, message);
};

test.each([
  [403, 'Forbidden', 'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "default"'],
  [401, 'Unauthorized', 'Unauthorized'],
])('a user who loses all rights (%i) is refused for that context only', async (code, reason, message) => {
  const provider = open();
  lapse(code, reason, message);
  const spec = aMachineSpec({ tags: { 'svc-service-key': 'abcd', 'svc-key': 'k' } });
  await expect(provider.create(offer, spec, 'k', {})).rejects.toMatchObject({
    refusal: 'permission',
    scope: 'whole-region',
    message: expect.stringContaining(message),
  });
});

test('a right lost after the create is a refusal, although the pod stays', async () => {
  const provider = open();
  const message = 'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "default"';
  server.answer((request, response) => {
    answer(request, response);
    if (request.method === 'PATCH' && !request.url.searchParams.has('dryRun') && request.url.pathname.startsWith(pods))
      lapse(403, 'Forbidden', message);
  });
  const spec = aMachineSpec({ tags: { 'svc-service-key': 'abcd', 'svc-key': 'k' } });
  await expect(provider.create(offer, spec, 'k', {})).rejects.toMatchObject({ refusal: 'permission', scope: 'whole-region' });
});
