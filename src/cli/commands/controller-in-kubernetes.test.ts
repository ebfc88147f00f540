import { expect, test } from 'vitest';
import { aHealth } from '../../../test/support/api.ts';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { fakeClient, type FakeRoutes } from '../../../test/support/fake-client.ts';
import { aKubernetesControllerRecord } from '../../../test/support/high-availability.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { aServiceView } from '../../../test/support/views.ts';
import type { KubernetesControllerStatus } from '../../launcher/high-availability/status.ts';
import type { Providers } from '../../provision/providers.ts';
import { SvcError } from '../../shared/errors.ts';
import type { RemoteController } from '../connection/controller-connection.ts';

const status: KubernetesControllerStatus = {
  context: 'prod',
  namespace: 'serving',
  state: 'running',
  leader: { pod: 'svc-controller-a', term: 7 },
  database: 'postgresql',
  controllers: [
    { name: 'svc-controller-a', node: 'node1', ready: true, trouble: null },
    { name: 'svc-controller-b', node: null, ready: false, trouble: 'Unschedulable: 0/3 nodes are available' },
  ],
  balancers: [{ name: 'svc-balancer-a', node: 'node2', ready: true, trouble: null }],
  checkers: [{ name: 'svc-health-checker-a', node: 'node2', ready: true, trouble: null }],
  endpoints: { type: 'ClusterIP', host: 'svc-endpoints.serving.svc' },
};

const idle: FakeRoutes = { listServices: () => ({ services: [] }), listClusters: () => ({ clusters: [] }), health: () => aHealth };
const busy: FakeRoutes = { ...idle, listServices: () => ({ services: [aServiceView({ name: 'chat' })] }) };

/** A controller in a Kubernetes cluster that records the calls to it. */
function inCluster(routes: FakeRoutes, state: KubernetesControllerStatus['state'] = 'running') {
  const done: string[] = [];
  let now = state;
  const api = () => (now === 'running' ? fakeClient(routes, []) : undefined);
  const recordCall =
    (what: string, next: KubernetesControllerStatus['state'] = now) =>
    async (): Promise<void> => {
      done.push(what);
      now = next;
    };
  const remoteController: RemoteController = {
    client: async () => fakeClient(routes, []),
    clientIfChosen: async () => api(),
    existing: async () => api(),
    running: async () => api(),
    bring: async () => undefined,
    preflight: async () => undefined,
    plan: async () => undefined,
    planWhileLocal: async () => undefined,
    record: () =>
      aKubernetesControllerRecord({
        machine: { provider: 'kubernetes', region: 'prod', zone: null, instanceType: '2 controllers and 1 balancer as pods', hourlyUsd: 0 },
        machineId: 'prod/serving/svc-controller',
        program: 'svc-controller',
      }),
    machine: async () => ({ state: now === 'absent' ? 'booting' : now }),
    differences: async () => [],
    upgrade: async () => {
      done.push('upgrade');
      return { isNew: false };
    },
    remove: async (purge) => {
      done.push(`remove${purge ? ' with everything' : ''}`);
      return undefined;
    },
    inCluster: {
      status: async () => ({ ...status, state: now }),
      leading: async () => api(),
      start: recordCall('start', 'running'),
      stop: recordCall('stop', 'stopped'),
      restart: recordCall('restart'),
    },
  };
  return { remoteController, done };
}

test('backup of a controller in Kubernetes names where its state is', async () => {
  const { remoteController } = inCluster(idle);
  const { code, stderr } = await runInProcess(['controller', 'backup', 'b.tar.gz'], { remoteController });
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(/hint: (?:Snapshot its volume|Back up its database)/) });
});

test('the status shows pods, leader, state location and endpoint access', async () => {
  const { remoteController } = inCluster(idle);
  const { code, stdout } = await runInProcess(['controller', 'status'], { remoteController, routes: idle });
  expect(code).toBe(0);
  for (const line of [
    'Cluster          prod, namespace serving',
    'Leader           svc-controller-a (term 7)',
    'State            PostgreSQL',
    'Controllers      1 of 2 ready',
    '                 svc-controller-b on no node yet: Unschedulable: 0/3 nodes are available',
    'Balancers        1 of 1 ready',
    'Health checkers  1 of 1 ready',
    'Endpoints        svc-endpoints.serving.svc (ClusterIP)',
    '                 from outside of the cluster: kubectl --context prod -n serving port-forward service/svc-endpoints PORT',
    'Log              kubectl --context prod -n serving logs svc-controller-a',
  ])
    expect(stdout).toContain(`${line}\n`);
});

test('the status shows differences from the configuration with their remedies', async () => {
  const { remoteController } = inCluster(idle);
  const difference = {
    what: 'serve.controller.balancers is 3, and the cluster is to run 1.',
    remedy: 'To change that: svc controller upgrade',
  };
  const other: RemoteController = { ...remoteController, differences: async () => [difference] };
  const { code, stdout } = await runInProcess(['controller', 'status'], { remoteController: other, env: { SVC_INVOKED_AS: './svc' } });
  expect(code).toBe(0);
  expect(stdout).toContain(
    'Differs          serve.controller.balancers is 3, and the cluster is to run 1.\n                 To change that: ./svc controller upgrade\n',
  );
  const json = await runInProcess(['controller', 'status', '--json'], { remoteController: other });
  expect(JSON.parse(json.stdout)).toMatchObject({ running: true, differences: [difference] });
  expect((await runInProcess(['controller', 'status'], { remoteController })).stdout).not.toContain('Differs');
});

test('the status is shown although the configuration is invalid', async () => {
  const { remoteController } = inCluster(idle);
  const unreadable: RemoteController = {
    ...remoteController,
    differences: async () => {
      throw new SvcError('SVC_INVALID_CONFIG', 'The configuration file has a problem.', { hint: 'Correct the listed lines.' });
    },
  };
  const { code, stdout } = await runInProcess(['controller', 'status'], { remoteController: unreadable });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('It cannot be compared with config.yaml: The configuration'),
  });
});

test('the status of a stopped controller has the start command', async () => {
  const { remoteController } = inCluster(idle, 'stopped');
  const { code, stdout } = await runInProcess(['controller', 'status'], { remoteController });
  expect(code).toBe(3);
  expect(stdout).toContain('(stopped; svc controller start starts it)');
  const json = await runInProcess(['controller', 'status', '--json'], { remoteController });
  expect(JSON.parse(json.stdout)).toMatchObject({ running: false, cluster: { state: 'stopped', leader: { pod: 'svc-controller-a' } } });
});

test("start prints the controller's location and the kubectl command for its log", async () => {
  const { remoteController } = inCluster(idle);
  const { code, stderr } = await runInProcess(['controller', 'start'], { remoteController, routes: idle });
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'The controller runs in prod/serving. To read its log: kubectl --context prod -n serving logs svc-controller-a\n',
  });
});

test('stop removes the pods; with services it requires --keep-services', async () => {
  const refused = inCluster(busy);
  const { code, stderr } = await runInProcess(['controller', 'stop'], { remoteController: refused.remoteController, routes: busy });
  expect({ code, done: refused.done }).toEqual({ code: 4, done: [] });
  expect(stderr).toContain('still looks after: chat');
  const { remoteController, done } = inCluster(busy);
  expect((await runInProcess(['controller', 'stop', '--keep-services'], { remoteController, routes: busy })).stderr).toContain(
    'its balancers and its objects are still there',
  );
  expect(done).toEqual(['stop']);
});

test('down removes a controller without services', async () => {
  const { remoteController, done } = inCluster(idle);
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { remoteController });
  expect({ code, done }).toEqual({ code: 0, done: ['remove'] });
  expect(stderr).toContain('Removed the controller and its balancers from prod/serving.');
});

test('down refuses a stopped controller, because it may have services', async () => {
  const { remoteController, done } = inCluster(idle, 'stopped');
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { remoteController });
  expect({ code, done }).toEqual({ code: 75, done: [] });
  expect(stderr).toContain('svc controller start');
  expect((await runInProcess(['controller', 'down', '--yes', '--purge'], { remoteController })).code).toBe(0);
  expect(done).toEqual(['remove with everything']);
});

test('restart replaces the pods; upgrade applies the configuration', async () => {
  const { remoteController, done } = inCluster(idle);
  expect((await runInProcess(['controller', 'restart'], { remoteController, routes: idle })).stderr).toContain(
    'All pods of the controller were restarted',
  );
  expect((await runInProcess(['controller', 'upgrade'], { remoteController, routes: idle })).stderr).toContain('as config.yaml says');
  expect(done).toEqual(['restart', 'upgrade']);
});

test.for(['plan', 'up'])('svc serve %s fails in the preflight without asking any provider', async (command) => {
  const { remoteController } = inCluster(idle);
  const impossible: RemoteController = {
    ...remoteController,
    preflight: async () => {
      throw new SvcError('SVC_NEEDS_KUBERNETES', 'serve.controller.high_availability is true, and no Kubernetes cluster can be used.');
    },
  };
  const providers: Providers = {
    ...providersOf(),
    states: async () => {
      throw new Error('no provider may be asked');
    },
  };
  const cwd = new URL('../../..', import.meta.url).pathname;
  const { code, stdout, stderr, calls } = await runInProcess(['serve', command, 'examples/hello/service.yaml'], {
    remoteController: impossible,
    providers,
    cwd,
    routes: idle,
  });
  expect({ code, stdout, calls }).toEqual({ code: 2, stdout: '', calls: [] });
  expect(stderr).toMatch(/^error: serve\.controller\.high_availability is true, and no Kubernetes cluster can be used\.\n/);
});
