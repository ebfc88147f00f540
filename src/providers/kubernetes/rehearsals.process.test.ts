import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { openKubernetesPlace } from '../../../test/support/kubernetes-place.ts';
import { ScriptedApiServer, sendJson, sendStatus, type SeenRequest } from '../../../test/support/scripted-api-server.ts';
import { makeTempHome } from '../../../test/support/temp-home.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';
import type { KubernetesConfig } from '../../domain/config.ts';
import type { MachineSpec } from '../provider.ts';
import type { KubernetesProvider } from './index.ts';

let server: ScriptedApiServer;
let home: string;

/** Refusals by `METHOD path`, in the words of a cluster. */
const refusals = new Map<string, { readonly code: number; readonly reason: string; readonly message: string }>();
const offer = anOffer({ provider: 'kubernetes', region: 'test', instanceType: '1CPU--2GB+' });
const pods = '/api/v1/namespaces/default/pods/';

/** The cluster has no nodes and no pods, and takes everything that is not refused. */
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
  openKubernetesPlace({ kubeconfigs: [server.writeKubeconfig()], home, config });
const rehearse = (place: KubernetesProvider, spec: Partial<MachineSpec> = {}) => place.rehearse(offer, aMachineSpec(spec), {});
const changes = () => server.seen.filter(({ method }) => method !== 'GET');
const refuse = (key: string, code: number, reason: string, message: string) => refusals.set(key, { code, reason, message });

test('the pod and the object it will belong to are shown to the cluster, and nothing is made', async () => {
  await rehearse(open());
  // Both are on their way at once.
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
    'Mend',
  ],
  ['a quota', 403, 'Forbidden', 'pods "p" is forbidden: exceeded quota: few, requested: pods=1', 'quota', 'Ask for less'],
  ['a webhook', 400, 'BadRequest', 'admission webhook "policy.example.com" denied the request: no latest tags', 'setup', 'Mend'],
  [
    'a missing right',
    403,
    'Forbidden',
    'pods "p" is forbidden: User "u" cannot patch resource "pods" in API group "" in the namespace "default"',
    'permission',
    'svc check kubernetes --role | kubectl --context test apply -f -',
  ],
] as const)('%s is refused in the words of the cluster, with what to do', async (_, code, reason, message, refusal, hint) => {
  refuse(`PATCH ${pods}`, code, reason, message);
  await expect(rehearse(open())).rejects.toMatchObject({
    refusal,
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  });
});

test('a missing right to the object that pods belong to is noticed as well', async () => {
  const message = 'configmaps "svc" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "default"';
  refuse('PATCH /api/v1/namespaces/default/configmaps/', 403, 'Forbidden', message);
  await expect(rehearse(open())).rejects.toMatchObject({ refusal: 'permission' });
});

test('a volume or a ConfigMap that is not there is refused, with how to see what is', async () => {
  refuse('GET /api/v1/namespaces/default/persistentvolumeclaims/models', 404, 'NotFound', 'not found');
  await expect(rehearse(open(), { volumes: { '/data': 'models' } })).rejects.toMatchObject({
    refusal: 'setup',
    message: 'The cluster test has no PersistentVolumeClaim models in the namespace default, which the pod needs.',
    hint: expect.stringContaining('kubectl --context test -n default get persistentvolumeclaims'),
  });
  refuse('PATCH /api/v1/namespaces/default/configmaps/settings', 404, 'NotFound', 'not found');
  const podConfig = { spec: { containers: [{ envFrom: [{ configMapRef: { name: 'settings' } }] }] } };
  await expect(rehearse(open({ podConfig }))).rejects.toMatchObject({ message: expect.stringContaining('no ConfigMap settings') });
  const look = server.seen.find(({ url }) => url.pathname.endsWith('/configmaps/settings'));
  expect([look?.body, look?.url.searchParams.get('dryRun')]).toEqual(['{}', 'All']);
});

test('what the user may not look at, and a webhook that takes no trials, speak against nothing', async () => {
  refuse('GET /api/v1/namespaces/default/persistentvolumeclaims/', 403, 'Forbidden', 'User "u" cannot get resource');
  refuse(`PATCH ${pods}`, 400, 'BadRequest', 'admission webhook "audit.example.com" does not support dry run');
  await expect(rehearse(open(), { volumes: { '/data': 'models' } })).resolves.toBeUndefined();
});

test('a server that breaks off has refused nothing', async () => {
  server.answer((_request, response) => response.destroy());
  await expect(rehearse(open())).rejects.toMatchObject({ code: 'SVC_KUBERNETES', kind: 'transient' });
});

test('before the first pod of its kind is made it is shown, and what is refused then leaves nothing to remove', async () => {
  const place = open({ provisionTimeoutSeconds: 0 });
  const made = (key: string) => place.create(offer, aMachineSpec({ tags: { 'svc-service-key': 'abcd', 'svc-key': key } }), key, {});
  refuse(`PATCH ${pods}`, 403, 'Forbidden', 'pods "p" is forbidden: no PriorityClass with name nope was found');
  await expect(made('k1')).rejects.toMatchObject({ refusal: 'setup' });
  expect(changes().filter(({ method, url }) => method === 'PATCH' && !url.searchParams.has('dryRun'))).toEqual([]);
  refusals.clear();
  // The server of the test shows no pods, so that neither is ever on a node.
  for (const key of ['k2', 'k3']) await expect(made(key)).rejects.toMatchObject({ refusal: 'capacity' });
  const trials = changes().filter(({ url }) => url.searchParams.has('dryRun'));
  expect(trials).toHaveLength(2);
});
