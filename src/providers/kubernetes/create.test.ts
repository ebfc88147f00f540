import { expect, test } from 'vitest';
import { aMachineSpec, anOffer } from '../../../test/support/builders.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { defaultConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { SvcError } from '../../shared/errors.ts';
import { seededRandom } from '../../shared/random.ts';
import { KubernetesCluster } from './kubernetes-cluster.ts';
import { createMachine, planMachine, type Creation } from './create.ts';
import { PodWatches } from './pod-watches.ts';

/** A machine to create in a Kubernetes cluster of which `api` is the API. */
function aCreation(api: FakeKubeApi, change: Partial<Pick<Creation, 'offer' | 'spec'>>, clock = new FakeClock()): Creation {
  return {
    cluster: new KubernetesCluster(api, clock, new PodWatches({ clock, random: seededRandom(1) }, () => Promise.resolve(api))),
    config: kubernetesContextConfig(defaultConfig.kubernetes, 'prod'),
    offer: anOffer({ provider: 'kubernetes', region: 'prod' }),
    spec: aMachineSpec(),
    ref: { context: 'prod', namespace: 'serving', base: 'svc-chat' },
    command: ['sh'],
    clock,
    signal: undefined,
    ...change,
  };
}

/** An API whose access reviews have this answer. */
class ReviewingApi extends FakeKubeApi {
  readonly #isAllowed: boolean;

  constructor(isAllowed: boolean) {
    super();
    this.#isAllowed = isAllowed;
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the interface has it
  override create<T extends KubeObject>(path: string, object: KubeDraft): Promise<T | undefined> {
    return super.create<T>(path, { ...object, status: { allowed: this.#isAllowed } });
  }
}

const service = aMachineSpec({ tags: { 'svc-service-key': 'abcd' } });

test.each<readonly [string, boolean, Creation['spec'], boolean]>([
  ['a replica whose condition the user may set', true, service, true],
  ['a replica whose condition the user may not set', false, service, false],
  ['a machine without a service', true, aMachineSpec({ tags: {} }), false],
  ['a controller', true, { ...service, role: 'controller' }, false],
])('%s: the readiness gate is set only for what svc reports', async (_, isAllowed, spec, hasGate) => {
  expect((await planMachine(aCreation(new ReviewingApi(isAllowed), { spec }))).hasReadinessGate).toBe(hasGate);
});

test('with hidden nodes, a GPU selector of the task is enough for a machine', async () => {
  const api = new FakeKubeApi();
  api.failures.set('list /api/v1/nodes', new SvcError('SVC_DENIED', 'nodes is forbidden'));
  const { demands } = await planMachine(
    aCreation(api, {
      offer: anOffer({ provider: 'kubernetes', region: 'prod', accelerator: { name: 'L4', count: 1 } }),
      spec: aMachineSpec({
        providerConfig: { kubernetes: { podConfig: { spec: { nodeSelector: { 'nvidia.com/gpu.product': 'NVIDIA-L4' } } } } },
      }),
    }),
  );
  expect(demands.gpu).toEqual({ resource: 'nvidia.com/gpu', anyOf: [] });
});

test.each<readonly [string, readonly string[], object]>([
  // The create returns after a while; `inspect` counts the rest of the wait.
  ['without nodes a pod waits for new ones', [], { status: 'fulfilled' }],
  ['with full nodes a pod is refused after ten seconds', ['n1'], { status: 'rejected', reason: { refusal: 'capacity' } }],
])('in a Kubernetes cluster %s', async (_, nodes, outcome) => {
  const api = new FakeKubeApi();
  for (const node of nodes) api.put(`/api/v1/nodes/${node}`, { status: {} });
  const clock = new FakeClock();
  const made = Promise.allSettled([createMachine(aCreation(api, {}, clock), () => Promise.resolve())]);
  await clock.advance(200_000);
  expect(await made).toMatchObject([outcome]);
});
