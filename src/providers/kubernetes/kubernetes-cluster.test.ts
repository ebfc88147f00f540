import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { ownLabels } from './names.ts';
import { byMachine, PodWatches } from './pod-watches.ts';

/** Delays its answers to lists until the test lets them through. */
class SlowApi extends FakeKubeApi {
  readonly #gate = Promise.withResolvers<void>();

  open(): void {
    this.#gate.resolve();
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface has it
  override async list<T extends KubeObject>(path: string) {
    await this.#gate.promise;
    return super.list<T>(path);
  }
}

test('a cancelled survey does not end it for other callers', async () => {
  const api = new SlowApi();
  api.put('/api/v1/nodes/n1', { metadata: { name: 'n1' } });
  const clock = new FakeClock();
  const watches = new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api));
  const cluster = new KubernetesCluster(api, clock, watches);
  const impatient = new AbortController();
  const first = cluster.survey(impatient.signal);
  const second = cluster.survey(undefined);
  impatient.abort(new Error('enough'));
  await expect(first).rejects.toThrow('enough');
  api.open();
  expect(await second).toMatchObject({ nodes: [{ name: 'n1' }] });
  expect(api.asked).toEqual(['list /api/v1/nodes', 'list /api/v1/pods']);
});

/** A pod that runs on a node, as watches report it. */
function aPod(name: string, machine: string, nodeName: string): Pod {
  const metadata = { name, uid: name, resourceVersion: '1', namespace: 'ns', labels: { [ownLabels.machine]: machine } };
  return { metadata, spec: { nodeName }, status: { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] } };
}

/** A Kubernetes cluster whose watches have reported some pods, and no nodes. */
function watchedCluster(pods: readonly Pod[]) {
  const api = new FakeKubeApi();
  for (const node of ['n1', 'n2']) api.put(`/api/v1/nodes/${node}`, { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const watches = { pods: () => byMachine(pods), nodes: () => undefined };
  return { api, cluster: new KubernetesCluster(api, new FakeClock(), watches) };
}

const refOf = (base: string) => ({ context: 'prod', namespace: 'ns', base });

test('a group counts as running although the watch has not shown all its pods', async () => {
  const pods = [0, 1].map((rank) => aPod(`g-x2-${rank}`, 'g-x2', 'n1'));
  const { api, cluster } = watchedCluster(pods.slice(0, 1));
  for (const pod of pods) api.put(`/api/v1/namespaces/ns/pods/${pod.metadata.name}`, pod);
  expect((await cluster.statuses([refOf('g-x2')], undefined)).get('g-x2')?.status).toEqual({ state: 'running' });
});

test('a status request covers only the named machine and its node', async () => {
  const { api, cluster } = watchedCluster([aPod('a', 'a', 'n1'), aPod('b', 'b', 'n2')]);
  expect([...(await cluster.statuses([refOf('a')], undefined)).keys()]).toEqual(['a']);
  expect(api.asked).toEqual(['get /api/v1/nodes/n1']);
});

test('events of many booting pods are requested in turns, of few each time', async () => {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  const lists = async (count: number): Promise<number> => {
    const conditions = [{ type: 'PodScheduled', status: 'True' }];
    const pods = Array.from({ length: count }, (_, index) => ({
      ...aPod(`p${index}`, `p${index}`, 'n1'),
      status: { phase: 'Pending', conditions },
    }));
    api.put('/api/v1/nodes/n1', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    const cluster = new KubernetesCluster(api, clock, { pods: () => byMachine(pods), nodes: () => undefined });
    api.asked.length = 0;
    for (let second = 0; second < 20; second += 2) {
      await cluster.statuses(
        pods.map(({ metadata }) => refOf(metadata.name)),
        undefined,
      );
      await clock.advance(2_000);
    }
    return api.asked.filter((one) => one.endsWith('/events')).length;
  };
  expect(await lists(3)).toBe(3 * 10);
  expect(await lists(200)).toBe(200 * 2);
});

test('a node unknown to the watch is lost only if the API lacks it', async () => {
  const watches = { pods: () => byMachine([aPod('a', 'a', 'new'), aPod('b', 'b', 'gone')]), nodes: () => new Map() };
  const api = new FakeKubeApi();
  api.put('/api/v1/nodes/new', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const statuses = await new KubernetesCluster(api, new FakeClock(), watches).statuses([refOf('a'), refOf('b')], undefined);
  expect(statuses.get('a')?.status).toEqual({ state: 'running' });
  expect(statuses.get('b')?.status).toMatchObject({ state: 'gone', message: 'The node gone is no longer in the cluster.' });
});

/** The status of the machine `a`, for a user without the right to read nodes. */
const statusWithoutNodes = async (pods: readonly Pod[]): Promise<unknown> => {
  const api = new FakeKubeApi();
  api.failures.set('/nodes', new SvcError('SVC_DENIED', 'You may not.'));
  const cluster = new KubernetesCluster(api, new FakeClock(), { pods: () => byMachine(pods), nodes: () => undefined });
  const statuses = await cluster.statuses(
    pods.map(({ metadata }) => refOf(metadata.name)),
    undefined,
  );
  return statuses.get('a')?.status;
};

test("with hidden nodes, silence is widespread from 55 % of the own pods' nodes", async () => {
  const cutOff = (name: string, node: string): Pod => {
    const conditions = [{ type: 'Ready', status: 'False' }];
    const containerStatuses = [{ name: 'main', ready: true, state: { running: {} } }];
    return { ...aPod(name, name, node), status: { phase: 'Running', conditions, containerStatuses } };
  };
  const few = [cutOff('a', 'n1'), aPod('b', 'b', 'n2'), aPod('c', 'c', 'n3')];
  expect(await statusWithoutNodes(few)).toMatchObject({ state: 'running', silence: { isWidespread: false } });
  expect(await statusWithoutNodes([...few.slice(0, 2), cutOff('c', 'n3')])).toMatchObject({
    state: 'running',
    silence: { isWidespread: true },
  });
});
