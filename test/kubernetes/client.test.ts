import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { buffer, text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeApi, KubeObject } from '../../src/kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../src/kubernetes/kube-errors.ts';
import { kubernetesLease } from '../../src/kubernetes/lease.ts';
import { WatchedList } from '../../src/kubernetes/watched-list.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { systemRandom } from '../../src/shared/random.ts';
import { openTestKubeApi } from '../support/kubernetes-provider.ts';
import { busyboxImage, describeKubernetes, startKubernetes, type TestCluster } from '../support/kubernetes.ts';
import { waitFor } from '../support/wait-for.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

function aConfigMap(name: string, data: Readonly<Record<string, string>> = {}, labels: Readonly<Record<string, string>> = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default', labels }, data };
}

describeKubernetes('api', 'requests to a real API server', () => {
  let cluster: TestCluster;
  let api: KubeApi;

  beforeAll(async () => {
    cluster = await startKubernetes();
    api = openTestKubeApi(cluster);
  });

  afterAll(async () => {
    await cluster.release();
  });

  test('an object is applied, taken over, merged, replaced and removed', async () => {
    const path = `${configMaps}/one`;
    expect(await api.get(path)).toBeUndefined();
    const draft = aConfigMap('one', { a: '1' });
    await api.apply(path, draft, { dryRun: true });
    expect(await api.get(path)).toBeUndefined();
    const made = await api.apply<ConfigMap>(path, draft);
    await cluster.kubectl('-n', 'default', 'patch', 'configmap', 'one', '-p', '{"data":{"a":"theirs","b":"2"}}');
    const again = await api.apply<ConfigMap>(path, draft);
    expect(again.data).toEqual({ a: '1', b: '2' });
    expect(again.metadata.uid).toBe(made.metadata.uid);
    expect((await api.merge<ConfigMap>(path, { data: { b: null } }))?.data).toEqual({ a: '1' });
    const now = await api.get<ConfigMap>(path);
    if (now === undefined) throw new Error('it was just there');
    expect((await api.replace<ConfigMap>(path, { ...now, data: { a: '3' } }))?.data).toEqual({ a: '3' });
    expect(await api.replace<ConfigMap>(path, { ...now, data: { a: '4' } })).toBeUndefined();
    expect(await api.create(configMaps, draft)).toBeUndefined();
    expect(await api.remove(path, { uid: '00000000-0000-0000-0000-000000000000' })).toBe(false);
    expect(await api.remove(path, { uid: now.metadata.uid })).toBe(true);
    expect(await api.remove(path)).toBe(false);
    expect(await api.replace<ConfigMap>(path, now)).toBeUndefined();
    expect(await api.merge(path, { data: {} })).toBeUndefined();
  });

  test('a listing spans pages and contains only the selected objects', async () => {
    const names = Array.from({ length: 620 }, (_, index) => `many-${index}`);
    for (let index = 0; index < names.length; index += 62) {
      await Promise.all(names.slice(index, index + 62).map((name) => api.create(configMaps, aConfigMap(name, {}, { group: 'many' }))));
    }
    const { items } = await api.list(configMaps, { labels: { group: 'many' } });
    expect(new Set(items.map(({ metadata }) => metadata.name))).toEqual(new Set(names));
    expect((await api.list(configMaps, { labels: { group: 'many' }, fieldSelector: 'metadata.name=many-7' })).items).toHaveLength(1);
    expect((await api.list(configMaps, { labelSelector: 'group' })).items).toHaveLength(620);
  });

  test("invalid or forbidden requests are reported in the API server's words", async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [] } };
    const invalid: unknown = await api.apply('/api/v1/namespaces/default/pods/p', pod).catch((error: unknown) => error);
    expect(invalid).toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('spec.containers: Required value') });
    expect(kubeStatusOf(invalid)).toMatchObject({ code: 422, reason: 'Invalid' });
    const reader = openTestKubeApi(
      cluster,
      await cluster.addUser('reader', { namespace: 'team', rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }] }),
    );
    expect(reader.namespace).toBe('team');
    await expect(reader.list('/api/v1/namespaces/default/pods')).rejects.toMatchObject({
      code: 'SVC_DENIED',
      message: expect.stringMatching(/^The cluster test refuses to list pods in namespace default: .*"reader" cannot list resource "pods"/),
    });
    await expect(reader.exec({ namespace: 'team', name: 'p' }, ['true'])).rejects.toMatchObject({ code: 'SVC_DENIED' });
  });

  test("a service account's token is accepted, and a wrong one is refused", async () => {
    const kubeconfig = await cluster.addServiceAccount('robot', {
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }],
    });
    const robot = openTestKubeApi(cluster, kubeconfig);
    await expect(robot.list(configMaps)).resolves.toBeDefined();
    writeFileSync(kubeconfig, readFileSync(kubeconfig, 'utf8').replace(/(token"?: *"?)[\w.-]+/, '$1nonsense'));
    await expect(robot.list(configMaps)).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
  });

  test('only one of two candidates gets a lease; terms grow despite its deletion', async () => {
    const { signal } = new AbortController();
    const a = kubernetesLease(api, 'default', 'leader', systemClock);
    const b = kubernetesLease(openTestKubeApi(cluster), 'default', 'leader', systemClock);
    const [none] = await Promise.all([a.read(signal), b.read(signal)]);
    const [first, second] = await Promise.all([a.write(none, 'a', 8_000, signal), b.write(none, 'b', 8_000, signal)]);
    expect([first, second].filter((view) => view !== undefined)).toHaveLength(1);
    const seen = await b.read(signal);
    const taken = await b.write(seen, 'c', 1, signal);
    expect(taken).toMatchObject({ holder: 'c', term: seen.term + 1, durationMs: 1 });
    expect(await a.write(first ?? seen, 'a', 8_000, signal)).toBeUndefined();
    await cluster.kubectl('-n', 'default', 'delete', 'lease', 'leader');
    const anew = await waitFor('a later second', async () => {
      const view = await b.write(await b.read(signal), 'd', 8_000, signal);
      if ((view?.term ?? 0) > (taken?.term ?? 0)) return view;
      await cluster.kubectl('-n', 'default', 'delete', 'lease', 'leader');
      return undefined;
    });
    expect(anew.holder).toBe('d');
  });

  describe('a watched collection', () => {
    const abort = new AbortController();
    const trouble: (string | undefined)[] = [];
    let list: WatchedList<ConfigMap>;

    const itemOf = (name: string): ConfigMap | undefined => list.items.find(({ metadata }) => metadata.name === name);
    const valueOf = (name: string): string | undefined => itemOf(name)?.data?.['v'];
    // oxlint-disable-next-line unicorn/consistent-function-scoping -- of these tests alone
    const put = (name: string, v: string): Promise<unknown> =>
      api.apply(`${configMaps}/${name}`, aConfigMap(name, { v }, { group: 'kept' }));

    beforeAll(async () => {
      await put('stays', '1');
      list = new WatchedList<ConfigMap>(
        configMaps,
        { labels: { group: 'kept' } },
        { api, clock: systemClock, random: systemRandom, signal: abort.signal, onTrouble: (why) => trouble.push(why) },
      );
      await list.synced;
    });

    afterAll(() => abort.abort());

    test('reports changes as they arrive', async () => {
      expect(valueOf('stays')).toBe('1');
      await put('stays', '2');
      await put('comes', '1');
      await waitFor('the changes', () => valueOf('stays') === '2' && valueOf('comes') === '1');
      await api.remove(`${configMaps}/comes`);
      await waitFor('the removal', () => itemOf('comes') === undefined);
    });

    test('continues after 410 Gone', async () => {
      await put('before', '1');
      await waitFor('the change', () => valueOf('before') === '1');
      const { resourceVersion } = await api.list(configMaps);
      await cluster.compactEtcd();
      await waitFor('the past to be forgotten', async () => {
        const end = await api.watch(configMaps, { resourceVersion, signal: abort.signal, onEvent: () => undefined });
        return end.how === 'expired';
      });
      await waitFor('the API server', () => put('after', '1').catch(() => false));
      await waitFor('the change', () => valueOf('after') === '1');
      expect(valueOf('before')).toBe('1');
    });

    test('reports changes made while its API server was unreachable', async () => {
      await put('going', '1');
      await waitFor('the change', () => valueOf('going') === '1');
      await cluster.stopApiServer();
      await waitFor('the trouble', () => trouble.at(-1) !== undefined);
      expect(valueOf('going')).toBe('1');
      await cluster.startApiServer();
      await waitFor('the API server', () => api.remove(`${configMaps}/going`).catch(() => false));
      await put('new', '1');
      await waitFor('the changes', () => itemOf('going') === undefined && valueOf('new') === '1');
      await waitFor('the end of the trouble', () => trouble.at(-1) === undefined);
    });

    test('continues after the API server was paused', async () => {
      const lastSeenAt = list.lastSeenAt ?? 0;
      await waitFor('the end of the trouble', () => trouble.at(-1) === undefined);
      await cluster.pauseApiServer();
      await waitFor('the loss to be noticed', () => trouble.at(-1) !== undefined);
      await cluster.resumeApiServer();
      await waitFor('the API server', () => put('late', '1').catch(() => false));
      await waitFor('the change', () => valueOf('late') === '1');
      expect(list.lastSeenAt).toBeGreaterThan(lastSeenAt);
    });
  });
});

describeKubernetes('nodes', 'commands and ports of real pods', () => {
  const pod = { namespace: 'default', name: 'web' };
  const mebibyte = 1024 * 1024;
  let cluster: TestCluster;
  let api: KubeApi;

  beforeAll(async () => {
    cluster = await startKubernetes({ nodes: 1 });
    api = openTestKubeApi(cluster);
    const container = { name: 'main', image: busyboxImage, command: ['/serve.sh'] };
    await api.apply('/api/v1/namespaces/default/pods/web', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default' },
      spec: { containers: [container], terminationGracePeriodSeconds: 1 },
    });
    await waitFor('the pod', async () => (await cluster.pods('default')).some(({ isReady }) => isReady));
  });

  afterAll(async () => {
    await cluster.release();
  });

  test('a command has outputs and an exit code', async () => {
    const process = await api.exec(pod, ['sh', '-c', 'echo "$1"; echo err >&2; exit 7', 'sh', 'a b\n"ü"']);
    expect(await Promise.all([text(process.stdio), text(process.stderr), process.ended])).toEqual([
      'a b\n"ü"\n',
      'err\n',
      { exitCode: 7, message: expect.stringContaining('exit code 7') },
    ]);
    const none = await api.exec(pod, ['/no/such/program']);
    none.stdio.resume();
    expect(await none.ended).toEqual({ exitCode: undefined, message: expect.stringContaining('no such file') });
  });

  test('megabytes are sent and received unchanged', async () => {
    const sent = randomBytes(8 * mebibyte);
    const process = await api.exec(pod, ['sh', '-c', `head -c ${sent.length}`], { stdin: true });
    process.stdio.write(sent);
    const got = await buffer(process.stdio);
    expect(createHash('sha256').update(got).digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'));
    expect((await process.ended).exitCode).toBe(0);
  });

  test('a command with unread output blocks, and continues when it is read', async () => {
    const process = await api.exec(pod, ['sh', '-c', 'head -c 100000000 /dev/zero; echo done >/tmp/done']);
    await once(process.stdio, 'readable');
    const isDone = await api.exec(pod, ['cat', '/tmp/done']);
    isDone.stdio.resume();
    expect((await isDone.ended).exitCode).toBe(1);
    expect((await buffer(process.stdio)).length).toBe(100_000_000);
    expect((await process.ended).exitCode).toBe(0);
  });

  test('input that a command does not read blocks the writer', async () => {
    const process = await api.exec(pod, ['sh', '-c', 'until [ -e /tmp/read ]; do sleep 0.1; done; wc -c'], { stdin: true });
    process.stdio.resume();
    const ended = once(process.stdio, 'drain');
    let isTaken = false;
    process.stdio.write(Buffer.alloc(64 * mebibyte), () => (isTaken = true));
    const version = await api.text('/version');
    expect(version).toContain('gitVersion');
    expect(isTaken).toBe(false);
    const start = await api.exec(pod, ['touch', '/tmp/read']);
    start.stdio.resume();
    expect((await start.ended).exitCode).toBe(0);
    await ended;
    expect(isTaken).toBe(true);
    process.close();
  });

  test('a port serves many concurrent connections through the API server', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const stream = await api.portForward(pod, 8080);
        stream.write('GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n');
        return await text(stream);
      }),
    );
    for (const reply of replies) expect(reply).toMatch(/^HTTP\/1\.[01] 200[^]*web/);
  });

  test('a port without a listener is reported with the reason', async () => {
    const stream = await api.portForward(pod, 9);
    await expect(text(stream)).rejects.toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('connection refused') });
  });

  test('removing a pod ends its commands', async () => {
    const process = await api.exec(pod, ['sleep', '1000']);
    process.stdio.resume();
    await api.remove('/api/v1/namespaces/default/pods/web', { gracePeriodSeconds: 0 });
    const { exitCode } = await process.ended;
    expect(exitCode === undefined || exitCode === 137).toBe(true);
    await expect(api.exec(pod, ['true'])).rejects.toMatchObject({ code: 'SVC_KUBERNETES', message: expect.stringContaining('not found') });
  });
});
