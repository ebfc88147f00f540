import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { defaultConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { planMachine } from './create.ts';
import { PodWatches } from './pod-watches.ts';

test('with hidden nodes, a GPU selector of the task is enough for a machine', async () => {
  const api = new FakeKubeApi();
  api.failures.set('list /api/v1/nodes', new SvcError('SVC_DENIED', 'nodes is forbidden'));
  const clock = new FakeClock();
  const { demands } = await planMachine({
    cluster: new KubernetesCluster(api, clock, new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api))),
    config: kubernetesContextConfig(defaultConfig.kubernetes, 'prod'),
    offer: anOffer({ provider: 'kubernetes', region: 'prod', accelerator: { name: 'L4', count: 1 } }),
    spec: aMachineSpec({
      providerConfig: { kubernetes: { podConfig: { spec: { nodeSelector: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } } } } },
    }),
    ref: { context: 'prod', namespace: 'serving', base: 'svc-chat' },
    command: ['sh'],
    clock,
    signal: undefined,
  });
  expect(demands.gpu).toEqual({ resource: 'nvidia.com/gpu', anyOf: [] });
});
