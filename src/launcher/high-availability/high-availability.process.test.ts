import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import {
  anchorPath,
  applied,
  apiGroupList,
  defaultStorageClass,
  depsIn,
  leasePath,
  withFakeKubeApi,
} from '../../../test/support/high-availability.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { readControllerRecord } from '../controller-record.ts';
import { ensureInCluster, prepare, removeFromCluster, startInCluster, stopInCluster } from './high-availability.ts';
import { planInCluster } from './plan.ts';
import { printedManifests } from './print-manifests.ts';
import { putFilesScript } from './settings-objects.ts';

test('a deploy applies the owning object first and records the controller', async () => {
  await withFakeKubeApi(async (deps, api) => {
    expect(await ensureInCluster(deps)).toEqual({ context: 'prod', namespace: 'serving' });
    expect(applied(api)[0]).toBe(anchorPath);
    const uid = api.objects.get(anchorPath)?.metadata.uid;
    const deployment = api.objects.get('/apis/apps/v1/namespaces/serving/deployments/svc-controller');
    expect(deployment?.metadata.ownerReferences).toMatchObject([{ kind: 'ConfigMap', name: 'svc-controller', uid }]);
    expect(readControllerRecord(deps.paths.controllerRecord)).toMatchObject({
      cluster: { context: 'prod', namespace: 'serving' },
      machineId: 'prod/serving/svc-controller',
      machine: { provider: 'kubernetes', instanceType: '1 controller and 2 balancers as pods' },
    });
  });
});

test.each([
  [['pods/status'], /^You may not grant rights to pods\/status: a pod will be ready/],
  [['pods/status', 'poddisruptionbudgets'], /^You may not grant rights to pods\/status and poddisruptionbudgets: a drain/],
])('a user who may not grant rights to %j deploys a controller without them', async (lacking, step) => {
  await withFakeKubeApi(async (deps, api) => {
    const steps: string[] = [];
    api.onApply = (object) => {
      if (lacking.some((right) => JSON.stringify(object).includes(right)))
        throw new SvcError('SVC_DENIED', 'attempting to grant rights that you lack');
    };
    await ensureInCluster({ ...deps, onStep: (text) => steps.push(text) });
    expect(applied(api)).toContain('/apis/rbac.authorization.k8s.io/v1/namespaces/serving/roles/svc-controller');
    expect(steps).toContainEqual(expect.stringMatching(step));
  });
});

test('the controller gets credentials of other providers in a Secret, nothing of this machine', async () => {
  await withFakeKubeApi(
    async (deps) => {
      const { given } = await prepare({ context: 'prod', namespace: 'serving' }, 'c0ffee', deps);
      expect(given.given).toEqual(['aws: keys of the profile lab']);
      expect(given.secrets.environment).toEqual({ AWS_PROFILE: 'lab', SVC_DATABASE: 'postgres://db/svc' });
      const config = given.secrets.files.find(({ path }) => path === 'config.yaml')?.content;
      expect(config).toContain('allowed_clouds:\n  - aws\n  - kubernetes\n');
      expect(given.secrets.files.map(({ path }) => path)).toEqual(['aws/credentials', 'config.yaml']);
    },
    { database: 'postgres://db/svc' },
  );
});

test('a controller deployed by another user is used unchanged', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    const { key } = readControllerRecord(deps.paths.controllerRecord) ?? {};
    await withTempHome(async (other) => {
      api.asked.length = 0;
      const theirs = depsIn(other, api);
      expect((await planInCluster(theirs)).isNew).toBe(false);
      await ensureInCluster(theirs);
      expect(applied(api)).toEqual([]);
      expect(readControllerRecord(theirs.paths.controllerRecord)).toMatchObject({ key, machineId: 'prod/serving/svc-controller' });
    });
  });
});

test('applying all objects again keeps the token', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    const token = (): unknown => JSON.parse(JSON.stringify(api.objects.get('/api/v1/namespaces/serving/secrets/svc-control-token'))).data;
    const before = token();
    await stopInCluster(deps);
    expect(api.asked.at(-1)).toBe('merge {"spec":{"replicas":0}} /apis/apps/v1/namespaces/serving/deployments/svc-controller');
    await startInCluster(deps);
    expect(token()).toEqual(before);
  });
});

test('an upgrade removes what an earlier version made and keeps what others made, volumes, and data', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    const { key } = readControllerRecord(deps.paths.controllerRecord) ?? {};
    const uid = api.objects.get(anchorPath)?.metadata.uid;
    const anchor = { apiVersion: 'v1', kind: 'ConfigMap', name: 'svc-controller', uid };
    const put = (path: string, labels: object, ownerReferences: readonly object[]): string => {
      api.put(path, { metadata: { name: path.split('/').at(-1), labels, ownerReferences } });
      return path;
    };
    const ours = { 'svc-controller': key };
    const old = put('/apis/rbac.authorization.k8s.io/v1/namespaces/serving/roles/svc-former', ours, [anchor]);
    const kept = [
      put('/api/v1/namespaces/serving/secrets/labelled-by-hand', ours, []),
      put('/api/v1/namespaces/serving/secrets/of-another', { 'svc-controller': 'other' }, [anchor]),
      put('/api/v1/namespaces/serving/persistentvolumeclaims/former-volume', ours, [anchor]),
    ];
    const before = [...api.objects.keys()].filter((path) => path !== old);
    await startInCluster(deps);
    expect(api.objects.has(old)).toBe(false);
    expect(before.filter((path) => !api.objects.has(path))).toEqual([]);
    expect(before).toEqual(expect.arrayContaining(kept));
  });
});

test('a user who may not list objects upgrades, and what is not needed any more stays', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    api.failures.set('list ', new SvcError('SVC_DENIED', 'you may not'));
    await startInCluster(deps);
    expect(applied(api)).toContain('/apis/apps/v1/namespaces/serving/deployments/svc-balancer');
  });
});

test('a user without cluster-wide permissions deploys without cluster-wide roles', async () => {
  await withFakeKubeApi(async (deps, api) => {
    api.failures.set('apply /apis/rbac.authorization.k8s.io/v1/clusterrole', new SvcError('SVC_DENIED', 'you may not'));
    await ensureInCluster(deps);
    expect(applied(api)).toContain('/apis/apps/v1/namespaces/serving/deployments/svc-balancer');
  });
});

/** A cloud that has assigned an address to the Service. */
class FakeCloud extends FakeKubeApi {
  override async get<T extends KubeObject>(path: string): Promise<T | undefined> {
    const found = await super.get<T>(path);
    const status = { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } };
    return found !== undefined && path.endsWith('/services/svc-endpoints') ? { ...found, status } : found;
  }
}

test("the load balancer's address becomes the public host", async () => {
  await withTempHome(async (home) => {
    const api = new FakeCloud();
    api.texts.set('/apis', apiGroupList);
    const deps = depsIn(home, api, { endpointService: 'LoadBalancer' });
    await ensureInCluster(deps);
    expect(readControllerRecord(deps.paths.controllerRecord)?.publicHost).toBe('203.0.113.9');
    expect(JSON.stringify(api.objects.get(anchorPath))).toContain('203.0.113.9');
  });
});

test('removal deletes all objects and the record', async () => {
  await withFakeKubeApi(async (deps, api) => {
    await ensureInCluster(deps);
    api.put(leasePath, { metadata: { name: 'svc-controller', annotations: { 'svc-lease-duration-ms': '6000' } } });
    await removeFromCluster(deps, false);
    expect([...api.objects.keys()]).toEqual(['/api/v1/namespaces/kube-system', defaultStorageClass]);
    expect(existsSync(deps.paths.controllerRecord)).toBe(false);
  });
});

/** A Kubernetes cluster where a pod ends only when its node confirms it, or when it is deleted by force. */
class LosingCluster extends FakeKubeApi {
  override async remove(path: string): Promise<boolean> {
    const pod = '/api/v1/namespaces/serving/pods/svc-balancer-1';
    const deployment = this.objects.get(path);
    if (path.endsWith('deployments/svc-balancer') && deployment !== undefined) {
      const labels = { ...deployment.metadata.labels, 'svc-role': 'balancer' };
      const metadata = { name: 'svc-balancer-1', labels, deletionTimestamp: 'now' };
      this.put(pod, { metadata, spec: { nodeName: 'node1' } });
    }
    return super.remove(path);
  }
}

test('a pod on a lost node does not block removal', async () => {
  await withTempHome(async (home) => {
    const api = new LosingCluster();
    api.texts.set('/apis', apiGroupList);
    const clock = new FakeClock();
    const deps = { ...depsIn(home, api), clock };
    await ensureInCluster(deps);
    api.put('/api/v1/nodes/node1', { metadata: { name: 'node1' }, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
    const removing = removeFromCluster(deps, false);
    const isDone = removing.then(() => true);
    while (!(await Promise.race([isDone, clock.advance(1_000).then(() => false)])));
    expect(api.objects.has('/api/v1/namespaces/serving/pods/svc-balancer-1')).toBe(false);
    expect(readControllerRecord(deps.paths.controllerRecord)).toBeUndefined();
  });
});

test('printed manifests are reproducible and contain Secrets only on request', async () => {
  await withFakeKubeApi(async (deps, api) => {
    const options = { context: undefined, withSecrets: false } as const;
    const printed = await printedManifests(options, deps);
    expect(await printedManifests(options, deps)).toEqual(printed);
    expect(printed.objects.map(({ kind }) => kind)).not.toContain('Secret');
    expect(printed.comment.join('\n')).toContain('kubectl --context prod -n serving create secret generic svc-control-token');
    const whole = await printedManifests({ ...options, withSecrets: true }, deps);
    expect(whole.objects.filter(({ kind }) => kind === 'Secret')).toHaveLength(3);
    api.failures.set('', new SvcError('SVC_KUBERNETES', 'it does not answer'));
    expect((await printedManifests(options, deps)).comment.join('\n')).toContain('The cluster did not answer');
  });
});

test('files reach the home with mode 0600; files for the first start are kept', async () => {
  await withTempHome(async (home) => {
    const at = (path: string): string => join(home, path);
    const script = putFilesScript.replaceAll('/var/lib/svc', at('volume')).replaceAll('/etc/svc', at('etc'));
    const run = (): string =>
      execFileSync('sh', ['-c', script], {
        env: { PATH: process.env['PATH'], KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' },
        encoding: 'utf8',
      });
    for (const folder of ['volume', 'etc/files', 'etc/controller']) mkdirSync(at(folder), { recursive: true });
    writeFileSync(at('etc/controller/host.json'), '{}');
    writeFileSync(at('etc/controller/kubeconfig'), 'server: https://API-SERVER\n');
    // Secrets may not exist yet.
    run();
    expect(readFileSync(at('volume/home/own-cluster.kubeconfig'), 'utf8')).toBe('server: https://[fd00::1]:443\n');

    writeFileSync(at('etc/files/list'), 'file-0 config.yaml\nonce-1 ssh/id\n');
    writeFileSync(at('etc/files/file-0'), 'one');
    writeFileSync(at('etc/files/once-1'), 'given');
    mkdirSync(at('volume/home/run'));
    run();
    expect(statSync(at('volume/home/ssh/id')).mode & 0o777).toBe(0o600);
    expect(statSync(at('volume/home')).mode & 0o777).toBe(0o700);
    expect(existsSync(at('volume/home/run'))).toBe(false);

    writeFileSync(at('etc/files/file-0'), 'two');
    writeFileSync(at('volume/home/ssh/id'), 'its own');
    run();
    expect(readFileSync(at('volume/home/config.yaml'), 'utf8')).toBe('two');
    expect(readFileSync(at('volume/home/ssh/id'), 'utf8')).toBe('its own');
  });
});
