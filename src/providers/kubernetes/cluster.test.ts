import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';
import { seededRandom } from '../../shared/random.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { Cluster } from './cluster.ts';
import { ownLabels } from './names.ts';
import { byMachine, PodWatches } from './pod-watches.ts';

/** Lists are answered when the test says so. */
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

test('who gives up a look at the nodes does not end it for others who wait for the same one', async () => {
  const api = new SlowApi();
  api.put('/api/v1/nodes/n1', { metadata: { name: 'n1' } });
  const clock = new FakeClock();
  const watches = new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api));
  const cluster = new Cluster(api, clock, watches);
  const impatient = new AbortController();
  const first = cluster.survey(impatient.signal);
  const second = cluster.survey(undefined);
  impatient.abort(new Error('enough'));
  await expect(first).rejects.toThrow('enough');
  api.open();
  expect(await second).toMatchObject({ nodes: [{ name: 'n1' }] });
  expect(api.asked).toEqual(['list /api/v1/nodes', 'list /api/v1/pods']);
});

/** A pod that runs on a node, as watches tell of it. */
function aPod(name: string, machine: string, nodeName: string): Pod {
  const metadata = { name, uid: name, resourceVersion: '1', namespace: 'ns', labels: { [ownLabels.machine]: machine } };
  return { metadata, spec: { nodeName }, status: { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] } };
}

/** A cluster whose watches have told of some pods, and of no nodes. */
function watchedCluster(pods: readonly Pod[]) {
  const api = new FakeKubeApi();
  for (const node of ['n1', 'n2']) api.put(`/api/v1/nodes/${node}`, { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const watches = { pods: () => byMachine(pods), nodes: () => undefined };
  return { api, cluster: new Cluster(api, new FakeClock(), watches) };
}

const refOf = (base: string) => ({ context: 'prod', namespace: 'ns', base });

test('of a group of which not all pods were told of yet none counts as gone', async () => {
  const pods = [0, 1].map((rank) => aPod(`g-x2-${rank}`, 'g-x2', 'n1'));
  const { api, cluster } = watchedCluster(pods.slice(0, 1));
  for (const pod of pods) api.put(`/api/v1/namespaces/ns/pods/${pod.metadata.name}`, pod);
  expect((await cluster.statuses([refOf('g-x2')], undefined)).get('g-x2')?.status).toEqual({ state: 'running' });
});

test('who asks about one machine hears of no other, and no other node is asked for', async () => {
  const { api, cluster } = watchedCluster([aPod('a', 'a', 'n1'), aPod('b', 'b', 'n2')]);
  expect([...(await cluster.statuses([refOf('a')], undefined)).keys()]).toEqual(['a']);
  expect(api.asked).toEqual(['get /api/v1/nodes/n1']);
});

test('what events say of many pods that boot is asked for by turns, and of a few all the time', async () => {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  const lists = async (count: number): Promise<number> => {
    const conditions = [{ type: 'PodScheduled', status: 'True' }];
    const pods = Array.from({ length: count }, (_, index) => ({
      ...aPod(`p${index}`, `p${index}`, 'n1'),
      status: { phase: 'Pending', conditions },
    }));
    api.put('/api/v1/nodes/n1', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    const cluster = new Cluster(api, clock, { pods: () => byMachine(pods), nodes: () => undefined });
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

test('a node of which no watch has told yet is no lost one; one that the cluster does not have is', async () => {
  const watches = { pods: () => byMachine([aPod('a', 'a', 'new'), aPod('b', 'b', 'gone')]), nodes: () => new Map() };
  const api = new FakeKubeApi();
  api.put('/api/v1/nodes/new', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const statuses = await new Cluster(api, new FakeClock(), watches).statuses([refOf('a'), refOf('b')], undefined);
  expect(statuses.get('a')?.status).toEqual({ state: 'running' });
  expect(statuses.get('b')?.status).toMatchObject({ state: 'gone', message: 'The node gone is no longer in the cluster.' });
});
