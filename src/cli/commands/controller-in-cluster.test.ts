import { expect, test } from 'vitest';
import { aHealth } from '../../../test/support/api.ts';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { fakeClient, type FakeRoutes } from '../../../test/support/fake-client.ts';
import { aClustersRecord } from '../../../test/support/high-availability.ts';
import { placesOf } from '../../../test/support/places.ts';
import { aServiceView } from '../../../test/support/views.ts';
import type { ClusterStatus } from '../../launcher/high-availability/status.ts';
import type { Places } from '../../provision/places.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Elsewhere } from '../elsewhere-connection.ts';

const status: ClusterStatus = {
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
  endpoints: { type: 'ClusterIP', host: 'svc-endpoints.serving.svc' },
};

const idle: FakeRoutes = { listServices: () => ({ services: [] }), listClusters: () => ({ clusters: [] }), health: () => aHealth };
const busy: FakeRoutes = { ...idle, listServices: () => ({ services: [aServiceView({ name: 'chat' })] }) };

/** A controller in a cluster that notes what is done to it. */
function inCluster(routes: FakeRoutes, state: ClusterStatus['state'] = 'running') {
  const done: string[] = [];
  let now = state;
  const api = () => (now === 'running' ? fakeClient(routes, []) : undefined);
  const note =
    (what: string, next: ClusterStatus['state'] = now) =>
    async (): Promise<void> => {
      done.push(what);
      now = next;
    };
  const elsewhere: Elsewhere = {
    client: async () => fakeClient(routes, []),
    clientIfChosen: async () => api(),
    existing: async () => api(),
    running: async () => api(),
    bring: async () => undefined,
    checkWish: async () => undefined,
    plan: async () => undefined,
    planWhileHere: async () => undefined,
    record: () =>
      aClustersRecord({
        place: { provider: 'kubernetes', region: 'prod', zone: null, instanceType: '2 controllers and 1 balancer as pods', hourlyUsd: 0 },
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
      start: note('start', 'running'),
      stop: note('stop', 'stopped'),
      restart: note('restart'),
    },
  };
  return { elsewhere, done };
}

test('the status shows pods, who leads, where the state is, and how endpoints are reached', async () => {
  const { elsewhere } = inCluster(idle);
  const { code, stdout } = await runInProcess(['controller', 'status'], { elsewhere, routes: idle });
  expect(code).toBe(0);
  for (const line of [
    'Cluster          prod, namespace serving',
    'Leader           svc-controller-a (term 7)',
    'State            PostgreSQL',
    'Controllers      1 of 2 ready',
    '                 svc-controller-b on no node yet: Unschedulable: 0/3 nodes are available',
    'Balancers        1 of 1 ready',
    'Endpoints        svc-endpoints.serving.svc (ClusterIP)',
    '                 from outside of the cluster: kubectl --context prod -n serving port-forward service/svc-endpoints PORT',
    'Log              kubectl --context prod -n serving logs svc-controller-a',
  ])
    expect(stdout).toContain(`${line}\n`);
});

test('the status names where it contradicts the configuration, and what to do', async () => {
  const { elsewhere } = inCluster(idle);
  const difference = {
    what: 'serve.controller.balancers is 3, and the cluster is to run 1.',
    remedy: 'To change that: svc controller upgrade',
  };
  const other: Elsewhere = { ...elsewhere, differences: async () => [difference] };
  const { code, stdout } = await runInProcess(['controller', 'status'], { elsewhere: other, env: { SVC_INVOKED_AS: './svc' } });
  expect(code).toBe(0);
  expect(stdout).toContain(
    'Differs          serve.controller.balancers is 3, and the cluster is to run 1.\n                 To change that: ./svc controller upgrade\n',
  );
  const json = await runInProcess(['controller', 'status', '--json'], { elsewhere: other });
  expect(JSON.parse(json.stdout)).toMatchObject({ running: true, differences: [difference] });
  expect((await runInProcess(['controller', 'status'], { elsewhere })).stdout).not.toContain('Differs');
});

test('a configuration that cannot be read does not hide how the controller is', async () => {
  const { elsewhere } = inCluster(idle);
  const unreadable: Elsewhere = {
    ...elsewhere,
    differences: async () => {
      throw new SvcError('SVC_INVALID_CONFIG', 'The configuration file has a problem.', { hint: 'Mend the listed lines.' });
    },
  };
  const { code, stdout } = await runInProcess(['controller', 'status'], { elsewhere: unreadable });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('It cannot be compared with config.yaml: The configuration'),
  });
});

test('the status of one that is stopped says how to start it', async () => {
  const { elsewhere } = inCluster(idle, 'stopped');
  const { code, stdout } = await runInProcess(['controller', 'status'], { elsewhere });
  expect(code).toBe(3);
  expect(stdout).toContain('(stopped; svc controller start starts it)');
  const json = await runInProcess(['controller', 'status', '--json'], { elsewhere });
  expect(JSON.parse(json.stdout)).toMatchObject({ running: false, cluster: { state: 'stopped', leader: { pod: 'svc-controller-a' } } });
});

test('started, it says where it is and how to read its log: a file in a pod is nothing that a person opens', async () => {
  const { elsewhere } = inCluster(idle);
  const { code, stderr } = await runInProcess(['controller', 'start'], { elsewhere, routes: idle });
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'The controller runs in prod/serving. To read its log: kubectl --context prod -n serving logs svc-controller-a\n',
  });
});

test('it is stopped by taking its pods away, unless there are services that are not to go on without it', async () => {
  const refused = inCluster(busy);
  const { code, stderr } = await runInProcess(['controller', 'stop'], { elsewhere: refused.elsewhere, routes: busy });
  expect({ code, done: refused.done }).toEqual({ code: 4, done: [] });
  expect(stderr).toContain('still looks after: chat');
  const { elsewhere, done } = inCluster(busy);
  expect((await runInProcess(['controller', 'stop', '--keep-services'], { elsewhere, routes: busy })).stderr).toContain(
    'its balancers and its objects are still there',
  );
  expect(done).toEqual(['stop']);
});

test('it is removed when nothing needs it any more', async () => {
  const { elsewhere, done } = inCluster(idle);
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { elsewhere });
  expect({ code, done }).toEqual({ code: 0, done: ['remove'] });
  expect(stderr).toContain('Removed the controller and its balancers from prod/serving.');
});

test('one that is stopped cannot say whether it has services, so it is not removed', async () => {
  const { elsewhere, done } = inCluster(idle, 'stopped');
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { elsewhere });
  expect({ code, done }).toEqual({ code: 75, done: [] });
  expect(stderr).toContain('svc controller start');
  expect((await runInProcess(['controller', 'down', '--yes', '--purge'], { elsewhere })).code).toBe(0);
  expect(done).toEqual(['remove with everything']);
});

test('restart replaces its pods, upgrade applies the configuration', async () => {
  const { elsewhere, done } = inCluster(idle);
  expect((await runInProcess(['controller', 'restart'], { elsewhere, routes: idle })).stderr).toContain(
    'All pods of the controller were started anew',
  );
  expect((await runInProcess(['controller', 'upgrade'], { elsewhere, routes: idle })).stderr).toContain('as config.yaml says');
  expect(done).toEqual(['restart', 'upgrade']);
});

test.for(['plan', 'up'])('svc serve %s says first that no cluster can have the controller, and plans and asks nothing', async (command) => {
  const { elsewhere } = inCluster(idle);
  const impossible: Elsewhere = {
    ...elsewhere,
    checkWish: async () => {
      throw new SvcError('SVC_NEEDS_KUBERNETES', 'serve.controller.high_availability is true, and no Kubernetes cluster can be used.');
    },
  };
  const places: Places = {
    ...placesOf(),
    states: async () => {
      throw new Error('no place is to be asked');
    },
  };
  const cwd = new URL('../../..', import.meta.url).pathname;
  const { code, stdout, stderr, calls } = await runInProcess(['serve', command, 'examples/hello/service.yaml'], {
    elsewhere: impossible,
    places,
    cwd,
    routes: idle,
  });
  expect({ code, stdout, calls }).toEqual({ code: 2, stdout: '', calls: [] });
  expect(stderr).toMatch(/^error: serve\.controller\.high_availability is true, and no Kubernetes cluster can be used\.\n/);
});
