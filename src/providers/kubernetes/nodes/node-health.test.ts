import { expect, test } from 'vitest';
import { FakeClock } from '../../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../../test/support/fake-kube-api.ts';
import { lastingMs, NodeHealth, type NodeTrouble } from './node-health.ts';
import type { Node } from './node-facts.ts';

type Ready = 'True' | 'False' | 'Unknown';

const node = (name: string, status: Ready, taints: readonly string[] = []): Node => ({
  metadata: { name, uid: name, resourceVersion: status },
  spec: { taints: taints.map((key) => ({ key, effect: 'NoSchedule' })) },
  status: { conditions: [{ type: 'Ready', status, reason: 'KubeletReady' }] },
});

/** A Kubernetes cluster whose nodes are polled, or watched. */
function someHealth(isWatched: boolean) {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  const health = new NodeHealth(clock);
  const all = new Map<string, Node>();
  const put = (...nodes: readonly Node[]): void => {
    for (const one of nodes) {
      all.set(one.metadata.name, one);
      api.put(`/api/v1/nodes/${one.metadata.name}`, { ...one });
    }
  };
  const troubleOf = async (name: string): Promise<NodeTrouble | undefined> =>
    (await health.troubles(api, new Set([name]), isWatched ? all : undefined, undefined))?.get(name);
  return { clock, put, troubleOf };
}

test.each([true, false])('a node that stops reporting is silent, and later lastingly silent (watched: %s)', async (isWatched) => {
  const { clock, put, troubleOf } = someHealth(isWatched);
  put(node('a', 'True'), node('b', 'True'), node('c', 'True'));
  expect(await troubleOf('a')).toBeUndefined();
  await clock.advance(2_000);
  put(node('a', 'Unknown'));
  expect(await troubleOf('a')).toMatchObject({ kind: 'silent', hasNoHeartbeat: true, isLasting: false, isWidespread: false });
  await clock.advance(lastingMs);
  expect(await troubleOf('a')).toMatchObject({ kind: 'silent', isLasting: true, message: 'The node a is not ready (KubeletReady).' });
  put(node('a', 'False', ['ToBeDeletedByClusterAutoscaler']));
  await clock.advance(2_000);
  expect(await troubleOf('a')).toMatchObject({ hasNoHeartbeat: false, isLasting: true, isTaken: true });
  put(node('a', 'True'));
  await clock.advance(2_000);
  expect(await troubleOf('a')).toBeUndefined();
  put(node('a', 'Unknown'));
  await clock.advance(2_000);
  expect(await troubleOf('a')).toMatchObject({ isLasting: false });
});

test.each([true, false])('silence is widespread from 55 %% of all nodes, whichever are requested (watched: %s)', async (isWatched) => {
  const { clock, put, troubleOf } = someHealth(isWatched);
  put(node('a', 'Unknown'), node('b', 'Unknown'), node('c', 'True'), node('d', 'True'));
  expect(await troubleOf('a')).toMatchObject({ isWidespread: false });
  put(node('c', 'False'));
  await clock.advance(2_000);
  expect(await troubleOf('a')).toMatchObject({ isWidespread: true });
  expect(await troubleOf('d')).toBeUndefined();
});

test('a node that was never seen ready is lastingly silent at once', async () => {
  const { put, troubleOf } = someHealth(true);
  put(node('a', 'Unknown'));
  expect(await troubleOf('a')).toMatchObject({ isLasting: true });
  expect(await troubleOf('b')).toEqual({ kind: 'removed', message: 'The node b is no longer in the cluster.' });
});
