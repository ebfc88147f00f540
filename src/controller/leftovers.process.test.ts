import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../test/support/builders.ts';
import { aDaemonContext } from '../../test/support/daemon-context.ts';
import { aDisabledProvider, providersOf, statesOf } from '../../test/support/providers.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { FakeCloud } from '../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { servicePaths } from '../shared/paths.ts';
import { seededRandom } from '../shared/random.ts';
import { openStore } from '../store/open-store.ts';
import { clusterPaths } from './cluster/cluster-paths.ts';
import { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { Leftovers } from './leftovers.ts';

const signal = new AbortController().signal;
const offer = anOffer();
const expired = new SvcError('SVC_CREDENTIALS', 'The login has expired.');

/** A provider that is not enabled now. */
class Cloud extends FakeProvider {
  answers = false;

  override list(...args: Parameters<FakeProvider['list']>): ReturnType<FakeProvider['list']> {
    return this.answers ? super.list(...args) : Promise.reject(expired);
  }
}

/** A controller with an empty store, over two providers. */
async function withEmptyStore(
  use: (world: { context: DaemonContext; nearBackend: FakeCloud; clouds: FakeCloud; cloud: Cloud }) => Promise<void>,
): Promise<void> {
  await withTempHome(async (home) => {
    const store = await openStore({ path: join(home, 'state.db'), clock: systemClock });
    const [nearBackend, clouds] = [1, 2].map((seed) => new FakeCloud(systemClock, seededRandom(seed), [offer]));
    if (nearBackend === undefined || clouds === undefined) throw new Error('two were made');
    const [near, cloud] = [new FakeProvider(nearBackend, 'near'), new Cloud(clouds, 'cloud')];
    const states = async () => [...statesOf(near), aDisabledProvider('cloud', 'its login has expired')];
    try {
      const providers = { ...providersOf(near, cloud), providers: async () => [near], states };
      await use({ context: aDaemonContext(home, store, providers), nearBackend, clouds, cloud });
    } finally {
      await store.close();
    }
  });
}

test('a service is kept while a provider cannot be asked for its machines', async () => {
  await withEmptyStore(async ({ context, nearBackend, clouds, cloud }) => {
    const { dir } = servicePaths(context.paths, 'c0ffee');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, 'reconciler.lock'), '');
    const tags = { 'svc-service': 'chat', 'svc-service-key': 'c0ffee' };
    for (const backend of [nearBackend, clouds]) backend.add('c0ffee-1', offer, aMachineSpec({ tags }));
    const leftovers = new Leftovers(context);
    expect(await leftovers.claims('service', 'c0ffee')).toBe(true);
    const forgotten: string[] = [];
    const sweep = () => leftovers.sweep(async ({ key }) => void forgotten.push(key), signal);
    expect(await sweep()).toMatchObject({
      removed: [],
      failed: [
        {
          leftover: { key: 'c0ffee', name: 'chat', unasked: [{ provider: 'cloud', reason: 'The login has expired.' }] },
          reason: 'The provider cloud could not be asked for machines: The login has expired.',
        },
      ],
    });
    expect([nearBackend.living.length, clouds.living.length, forgotten, [...leftovers.keys]]).toEqual([0, 1, [], ['c0ffee']]);
    cloud.answers = true;
    await sweep();
    expect([clouds.living.length, forgotten]).toEqual([0, ['c0ffee']]);
    expect(clouds.releases).toContain('c0ffee');
  });
});

test('a cluster that the store lacks is found and removed with its machine', async () => {
  await withEmptyStore(async ({ context, nearBackend, cloud }) => {
    cloud.answers = true;
    const leftovers = new Leftovers(context);
    const clusters = new Clusters(context, leftovers);
    const [lost, never] = ['feedbeef', 'ab0ba'].map((key) => clusterPaths(context.paths, key));
    for (const dir of [lost?.dir ?? '', never?.dir ?? '']) mkdirSync(dir, { recursive: true });
    writeFileSync(lost?.launchLog ?? '', 'Asking near\n');
    nearBackend.add('feedbeef-1-x', offer, aMachineSpec({ tags: { 'svc-cluster': 'box', 'svc-cluster-key': 'feedbeef' } }));
    await clusters.recover();
    expect([lost, never].map((paths) => existsSync(paths?.dir ?? ''))).toEqual([true, false]);
    expect(await leftovers.list(signal)).toMatchObject([{ kind: 'cluster', name: 'box', machines: [{ provider: 'near' }] }]);
    const { removed } = await leftovers.sweep(({ name, key }) => clusters.forget(name ?? key, key), signal);
    expect([removed.length, nearBackend.living.length, existsSync(lost?.dir ?? '')]).toEqual([1, 0, false]);
  });
});
