import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';
import { seededRandom } from '../../shared/random.ts';
import { Cluster } from './cluster.ts';
import { PodWatches } from './pod-watches.ts';

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
