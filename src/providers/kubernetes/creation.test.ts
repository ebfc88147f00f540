import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { defaultConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes-context.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import { Cluster } from './cluster.ts';
import { planMachine } from './creation.ts';
import { PodWatches } from './pod-watches.ts';

test("where nodes may not be read a task's own selector of GPUs is enough, as it was for the offer", async () => {
  const api = new FakeKubeApi();
  api.failures.set('list /api/v1/nodes', new SvcError('SVC_DENIED', 'nodes is forbidden'));
  const clock = new FakeClock();
  const { demands } = await planMachine({
    cluster: new Cluster(api, clock, new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api))),
    config: kubernetesContextConfig(defaultConfig.kubernetes, 'prod'),
    offer: anOffer({ provider: 'kubernetes', region: 'prod', accelerator: { name: 'L4', count: 1 } }),
    spec: aMachineSpec({
      placeConfig: { kubernetes: { podConfig: { spec: { nodeSelector: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } } } } },
    }),
    ref: { context: 'prod', namespace: 'serving', base: 'svc-chat' },
    command: ['sh'],
    clock,
    signal: undefined,
  });
  expect(demands.gpu).toEqual({ resource: 'nvidia.com/gpu', anyOf: [] });
});
