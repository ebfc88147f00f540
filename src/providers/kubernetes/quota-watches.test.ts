import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeEvent, KubeObject, KubeWatch, KubeWatchEnd } from '../../kubernetes/kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import { QuotaWatches } from './quota-watches.ts';

const namespaceRef = { context: 'prod', namespace: 'ns' };
const quotaPath = '/api/v1/namespaces/ns/resourcequotas';

/** An API server whose watches send what the test sets. */
function aWatchedApi() {
  const watched = new Map<string, (event: KubeEvent<KubeObject>) => void>();
  const api = new FakeKubeApi();
  const watch = (path: string, { onEvent, signal }: KubeWatch<KubeObject>): Promise<KubeWatchEnd> => {
    watched.set(path, onEvent);
    const { promise, resolve } = Promise.withResolvers<KubeWatchEnd>();
    signal?.addEventListener('abort', () => {
      watched.delete(path);
      resolve({ how: 'aborted' });
    });
    return promise;
  };
  return Object.assign(api, { watch, watched });
}

const anObject = (name: string, version: number, parts: object): KubeObject => ({
  metadata: { name, namespace: 'ns', uid: name, resourceVersion: String(version) },
  ...parts,
});

const aQuota = (version: number, hard: string, used: string): KubeObject =>
  anObject('few', version, { spec: { hard: { pods: hard } }, status: { hard: { pods: hard }, used: { pods: used } } });

async function someWatches(api = aWatchedApi()) {
  const clock = new FakeClock();
  const watches = new QuotaWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api));
  const stop = new AbortController();
  let freed = 0;
  const listen = (signal = stop.signal): void => watches.listen(namespaceRef, () => (freed += 1), signal);
  listen();
  await clock.advance(10);
  // Changes before the first list are unknown, so this reports one.
  expect(freed).toBe(1);
  freed = 0;
  return { clock, api, stop, listen, freed: () => freed };
}

test('a quota that is used less, allows more or is deleted may have room', async () => {
  const world = await someWatches();
  const say = async (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject): Promise<number> => {
    const before = world.freed();
    world.api.watched.get(quotaPath)?.({ type, object });
    await world.clock.settle();
    return world.freed() - before;
  };
  await say('ADDED', aQuota(10, '3', '2'));
  expect(await say('MODIFIED', aQuota(11, '3', '3'))).toBe(0);
  expect(await say('MODIFIED', aQuota(12, '3', '2'))).toBe(1);
  expect(await say('MODIFIED', aQuota(13, '4', '2'))).toBe(1);
  expect(await say('MODIFIED', aQuota(14, '4', '2'))).toBe(0);
  expect(await say('DELETED', aQuota(15, '4', '2'))).toBe(1);
  world.stop.abort();
});

test('a change during an attempt is reported to the next waiting search', async () => {
  const world = await someWatches();
  world.stop.abort();
  world.api.watched.get(quotaPath)?.({ type: 'ADDED', object: aQuota(10, '3', '2') });
  await world.clock.settle();
  expect(world.freed()).toBe(0);
  const again = new AbortController();
  world.listen(again.signal);
  await world.clock.settle();
  expect(world.freed()).toBe(1);
  again.abort();
  await world.clock.advance(200_000);
  expect([world.api.watched.size, world.clock.pendingTimers]).toEqual([0, 0]);
});

const aPod = (version: number, phase: string): KubeObject => anObject('p', version, { status: { phase } });

test('with unreadable quotas, a pod that ends or is deleted may free room', async () => {
  const api = aWatchedApi();
  api.failures.set(`text ${quotaPath}`, new SvcError('SVC_DENIED', 'The user cannot list resourcequotas.'));
  const world = await someWatches(api);
  const say = async (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject): Promise<void> => {
    api.watched.get('/api/v1/namespaces/ns/pods')?.({ type, object });
    await world.clock.advance(2_000);
  };
  await say('ADDED', aPod(10, 'Pending'));
  await say('MODIFIED', aPod(11, 'Running'));
  expect(world.freed()).toBe(0);
  await say('MODIFIED', aPod(12, 'Succeeded'));
  expect(world.freed()).toBe(1);
  await say('DELETED', aPod(13, 'Succeeded'));
  expect(world.freed()).toBe(1);
  world.stop.abort();
});
