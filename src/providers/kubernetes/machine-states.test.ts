import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { seededRandom } from '../../shared/random.ts';
import { assertMachineId, type MachineId } from '../provider.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { MachineStates } from './machine-states.ts';
import { ownLabels } from './names.ts';
import { PodWatches } from './pod-watches.ts';

const path = (name: string): string => `/api/v1/namespaces/ns/pods/${name}`;
const running = { phase: 'Running', containerStatuses: [{ name: 'main', restartCount: 0, state: { running: {} } }] };

function idOf(name: string, context = 'prod'): MachineId {
  const id: string = `${context}/ns/${name}`;
  assertMachineId(id);
  return id;
}

/** The machines of a Kubernetes cluster that a test changes. */
function someStates() {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  const watches = new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api));
  const cluster = new KubernetesCluster(api, clock, watches);
  const open = (context: string) => (context === 'prod' ? Promise.resolve(cluster) : Promise.reject(new Error('it does not answer')));
  const states = new MachineStates(clock, { cluster: open }, { addKnown: () => undefined });
  const put = (name: string): void =>
    api.put(path(name), { metadata: { name, namespace: 'ns', labels: { [ownLabels.machine]: name } }, status: running });
  const stateOf = async (name: string): Promise<unknown> => (await states.of([idOf(name)], undefined)).get(idOf(name));
  return { clock, api, states, put, stateOf };
}

test('a removed machine stays gone however long its Kubernetes cluster shows its pod', async () => {
  const { clock, states, put, stateOf } = someStates();
  put('a');
  expect(await stateOf('a')).toEqual({ state: 'running' });
  states.removed(idOf('a'), false);
  await clock.advance(600_000);
  states.removed(idOf('b'), true);
  expect(await stateOf('a')).toEqual({ state: 'gone', reason: 'deleted' });
  expect(states.wasRemoved(idOf('a'))).toBe(true);
});

test('a removed machine is forgotten some time after its last pod is gone', async () => {
  const { clock, api, states, put, stateOf } = someStates();
  put('a');
  states.removed(idOf('a'), false);
  states.removed(idOf('b'), true);
  await clock.advance(60_000);
  api.objects.clear();
  await stateOf('a');
  await clock.advance(60_000);
  states.removed(idOf('c'), true);
  expect(['a', 'b', 'c'].map((name) => states.wasRemoved(idOf(name)))).toEqual([true, false, true]);
  await clock.advance(60_000);
  await stateOf('a');
  states.removed(idOf('d'), true);
  expect(['a', 'c', 'd'].map((name) => states.wasRemoved(idOf(name)))).toEqual([false, true, true]);
});

test('a removed machine is gone in an unreachable context; others stay visible', async () => {
  const { states, put } = someStates();
  put('a');
  const [reachable, unreachable] = [idOf('a'), idOf('a', 'away')];
  await expect(states.of([reachable, unreachable], undefined)).rejects.toThrow('it does not answer');
  states.removed(unreachable, false);
  expect([...(await states.of([reachable, unreachable], undefined)).values()]).toEqual([
    { state: 'running' },
    { state: 'gone', reason: 'deleted' },
  ]);
});
