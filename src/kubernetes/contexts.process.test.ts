import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { noFence } from '../shared/fence.ts';
import { kubeContexts, openKubeApi } from './contexts.ts';
import type { KubeconfigSource } from './kubeconfig.ts';
import { portableKubeconfig } from './portable-kubeconfig.ts';

let home: string;

beforeEach(() => {
  home = makeTempHome();
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

interface Parts {
  readonly current?: string;
  readonly contexts?: Readonly<Record<string, unknown>>;
  readonly clusters?: Readonly<Record<string, unknown>>;
  readonly users?: Readonly<Record<string, unknown>>;
}

const named = (field: string, parts: Readonly<Record<string, unknown>> = {}): unknown =>
  Object.entries(parts).map(([name, part]) => ({ name, [field]: part }));

function write(name: string, { current, contexts, clusters, users }: Parts): string {
  const path = join(home, name);
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': current,
      contexts: named('context', contexts),
      clusters: named('cluster', clusters),
      users: named('user', users),
    }),
  );
  return path;
}

function source(...files: readonly string[]): KubeconfigSource {
  return { files, pod: undefined };
}

const one = {
  current: 'prod',
  contexts: { prod: { cluster: 'c', user: 'u', namespace: 'team' }, test: { cluster: 'c', user: 'u' } },
  clusters: { c: { server: 'https://name:pw@k8s.example:6443/', 'insecure-skip-tls-verify': true } },
  users: { u: { exec: { apiVersion: 'v1', command: 'aws', args: ['eks'] } } },
} satisfies Parts;

test('kubeContexts returns the contexts with their printable fields', () => {
  const contexts = kubeContexts(source(write('config', one)));
  expect(contexts.names).toEqual(['prod', 'test']);
  expect(contexts.current).toBe('prod');
  expect(contexts.has('test')).toBe(true);
  expect(contexts.has('other')).toBe(false);
  expect(contexts.cluster('prod')).toMatchObject({
    namespace: 'team',
    server: 'https://k8s.example:6443',
    insecure: true,
    login: 'credential plugin aws',
    isInside: false,
  });
  expect(contexts.cluster('test').namespace).toBe('default');
});

test('the first definition of a name in several files counts; missing files are skipped', () => {
  const second = { ...one, current: 'other', contexts: { prod: { cluster: 'x' }, more: { cluster: 'c', user: 'u' } } };
  const contexts = kubeContexts(source(join(home, 'none'), write('a', one), write('b', second)));
  expect(contexts.names).toEqual(['prod', 'test', 'more']);
  expect(contexts.current).toBe('prod');
  expect(contexts.cluster('prod').namespace).toBe('team');
});

test('without a kubeconfig there are no contexts and no error', () => {
  const contexts = kubeContexts(source(join(home, 'none')));
  expect(contexts).toMatchObject({ names: [], current: undefined });
  expect(() => contexts.cluster('prod')).toThrow(`There is no context prod in the kubeconfig (${join(home, 'none')}); there are none.`);
});

test('a mistyped context gets a suggestion', () => {
  const contexts = kubeContexts(source(write('config', one)));
  expect(() => contexts.cluster('pord')).toThrow(expect.objectContaining({ code: 'SVC_CREDENTIALS', hint: 'Did you mean prod?' }));
});

test('an invalid kubeconfig is reported with its line but without its content', () => {
  const path = join(home, 'config');
  writeFileSync(path, 'users:\n- name: u\n  user: {token: very-secret\n   x: [}\n');
  const read = (): unknown => kubeContexts(source(path));
  expect(read).toThrow(expect.objectContaining({ code: 'SVC_CREDENTIALS' }));
  expect(read).toThrow(/config cannot be read: line [345] is not YAML/);
  expect(read).not.toThrow(/very-secret/);
  writeFileSync(path, '- a list\n');
  expect(read).toThrow('it is not a kubeconfig');
  writeFileSync(path, '');
  expect(kubeContexts(source(path)).names).toEqual([]);
});

test.each([
  ['no cluster', { ...one, clusters: {} }, 'its cluster c is not described'],
  ['no user', { ...one, users: {} }, 'its user u is not described'],
  ['no address', { ...one, clusters: { c: { server: 'nonsense' } } }, 'the address of its API server is none'],
  ['no TLS', { ...one, clusters: { c: { server: 'http://k8s.example' } } }, 'without TLS: anybody on the way could read the login'],
])('a context with %s cannot be used', (_what, parts, why) => {
  const contexts = kubeContexts(source(write('config', parts)));
  expect(() => contexts.cluster('prod')).toThrow(why);
});

test('an API server on this machine needs no TLS, as for kubectl proxy', () => {
  const contexts = kubeContexts(source(write('config', { ...one, clusters: { c: { server: 'http://127.0.0.1:8001' } } })));
  expect(contexts.cluster('prod').server).toBe('http://127.0.0.1:8001');
});

function inPod(): KubeconfigSource['pod'] {
  const folder = join(home, 'serviceaccount');
  mkdirSync(folder);
  writeFileSync(join(folder, 'token'), 'pod-token\n');
  writeFileSync(join(folder, 'namespace'), 'svc-system');
  return { host: 'fd00::1', port: '443', folder };
}

test('in a pod, its service account is a context besides those of the kubeconfig', () => {
  const pod = inPod();
  const alone = kubeContexts({ files: [], pod });
  expect(alone).toMatchObject({ names: ['in-cluster'], current: 'in-cluster' });
  expect(alone.cluster('in-cluster')).toMatchObject({
    namespace: 'svc-system',
    server: 'https://[fd00::1]:443',
    isInside: true,
    insecure: false,
  });
  const both = kubeContexts({ files: [write('config', one)], pod });
  expect(both).toMatchObject({ names: ['prod', 'test', 'in-cluster'], current: 'prod' });
  expect(both.cluster('prod').isInside).toBe(false);
  const same = write('same', { ...one, clusters: { c: { server: 'https://[fd00::1]' } } });
  expect(kubeContexts({ files: [same], pod }).cluster('prod').isInside).toBe(true);
});

test("openKubeApi uses the context's namespace or the given one", () => {
  const from = source(write('config', one));
  const options = { fence: noFence, clock: systemClock, random: () => 0, source: from };
  expect(openKubeApi('prod', options)).toMatchObject({ context: 'prod', namespace: 'team', isInside: false });
  expect(openKubeApi('prod', { ...options, namespace: 'mine' }).namespace).toBe('mine');
  expect(() => openKubeApi('none', options)).toThrow('There is no context none');
});

test('a portable kubeconfig embeds files and omits contexts that only work locally', () => {
  writeFileSync(join(home, 'ca.crt'), 'CA');
  writeFileSync(join(home, 'me.crt'), 'CERT');
  writeFileSync(join(home, 'me.key'), 'KEY');
  writeFileSync(join(home, 'token'), 'TOKEN\n');
  const path = write('config', {
    current: 'token',
    contexts: {
      cert: { cluster: 'away', user: 'cert', namespace: 'team' },
      token: { cluster: 'away', user: 'token' },
      plugin: { cluster: 'away', user: 'plugin' },
      gcp: { cluster: 'away', user: 'gcp' },
      oidc: { cluster: 'away', user: 'oidc' },
      here: { cluster: 'here', user: 'token' },
      proxied: { cluster: 'proxied', user: 'token' },
      unused: { cluster: 'away', user: 'token' },
    },
    clusters: {
      away: { server: 'https://k8s.example', 'certificate-authority': 'ca.crt' },
      here: { server: 'https://127.0.0.1:6443' },
      proxied: { server: 'https://k8s.example', 'proxy-url': 'socks5://localhost:1080' },
    },
    users: {
      cert: { 'client-certificate': 'me.crt', 'client-key': 'me.key' },
      token: { tokenFile: 'token' },
      plugin: { exec: { command: 'aws' } },
      gcp: { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'gcloud' } } },
      oidc: { 'auth-provider': { name: 'oidc', config: { 'id-token': 'x', 'idp-certificate-authority': join(home, 'ca.crt') } } },
    },
  });
  const made = portableKubeconfig(['cert', 'token', 'plugin', 'gcp', 'oidc', 'here', 'proxied', 'none'], source(path));
  expect(made.contexts).toEqual(['cert', 'token', 'oidc']);
  expect(made.leftOut.map(({ context, reason }) => `${context}: ${reason}`)).toEqual([
    'plugin: its user logs in with the program aws, which is not there',
    'gcp: its user logs in with gcp, which needs programs that are not there',
    'here: its API server https://127.0.0.1:6443 is on this machine',
    'proxied: it is reached through a proxy on this machine',
    expect.stringContaining('none: There is no context none'),
  ]);
  const remoteDir = join(home, 'elsewhere');
  mkdirSync(remoteDir);
  writeFileSync(join(remoteDir, 'config'), made.text ?? '');
  const there = kubeContexts(source(join(remoteDir, 'config')));
  expect(there.current).toBe('token');
  expect(there.cluster('cert')).toMatchObject({
    namespace: 'team',
    cluster: { 'certificate-authority-data': Buffer.from('CA').toString('base64') },
    user: {
      'client-certificate-data': Buffer.from('CERT').toString('base64'),
      'client-key-data': Buffer.from('KEY').toString('base64'),
    },
  });
  expect(there.cluster('token').user).toEqual({ token: 'TOKEN' });
  expect(made.text).not.toContain(home);
  expect(portableKubeconfig(['plugin'], source(path)).text).toBeUndefined();
});
