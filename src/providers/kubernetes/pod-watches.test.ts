import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import { ownLabels } from './names.ts';
import { PodWatches } from './pod-watches.ts';

const namespaceRef = { context: 'prod', namespace: 'ns' };

/** Watches of a Kubernetes cluster to which the user has not logged in yet. */
function someWatches() {
  const clock = new FakeClock();
  const api = new FakeKubeApi();
  api.put('/api/v1/namespaces/ns/pods/p', { metadata: { name: 'p', namespace: 'ns', labels: { [ownLabels.machine]: 'p' } } });
  const world = { isLoggedIn: false, tries: 0 };
  const watches = new PodWatches({ clock, random: seededRandom(1) }, async () => {
    world.tries += 1;
    if (!world.isLoggedIn) throw new SvcError('SVC_CREDENTIALS', 'The login to prod has expired.');
    return api;
  });
  return { clock, world, watches };
}

test('a namespace is watched as soon as its API can be opened', async () => {
  const { clock, world, watches } = someWatches();
  const listening = new AbortController();
  watches.listen(() => undefined, listening.signal, [namespaceRef]);
  await clock.advance(120_000);
  expect(watches.pods('prod', 'ns')).toBeUndefined();
  // Pods and nodes, with backoff up to half a minute.
  expect(world.tries).toBeGreaterThan(8);
  expect(world.tries).toBeLessThan(40);
  world.isLoggedIn = true;
  await clock.advance(31_000);
  expect(
    watches
      .pods('prod', 'ns')
      ?.get('p')
      ?.map(({ metadata }) => metadata.name),
  ).toEqual(['p']);
  // Many machines are inspected one by one: the index is built once per change.
  expect(watches.pods('prod', 'ns')).toBe(watches.pods('prod', 'ns'));
  expect(watches.nodes('prod')?.size).toBe(0);
  listening.abort();
});

test('opening an API is not retried without a listener', async () => {
  const { clock, world, watches } = someWatches();
  const listening = new AbortController();
  watches.listen(() => undefined, listening.signal, [namespaceRef]);
  await clock.advance(60_000);
  listening.abort();
  await clock.advance(60_000);
  const before = world.tries;
  await clock.advance(600_000);
  expect(world.tries).toBe(before);
  expect(clock.pendingTimers).toBe(0);
});
