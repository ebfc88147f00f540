import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { applyLoadBalancer, applyNodePort } from './pod-service.ts';

/** A Kubernetes cluster that records the applied Service. */
class KeepingApi extends FakeKubeApi {
  applied: KubeDraft | undefined;

  override apply<T extends KubeObject>(path: string, object: KubeDraft): Promise<T> {
    this.applied = object;
    return super.apply<T>(path, object);
  }
}

const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', labels: { 'svc-key': 'k' } } };

test.each([
  ['node port', (api: KeepingApi) => applyNodePort(api, pod, 8080)],
  ['load balancer', (api: KeepingApi) => applyLoadBalancer(api, pod, { port: 8080, clock: new FakeClock(), timeoutMs: 0 })],
])('a %s Service publishes pods that Kubernetes marks as not ready', async (_, apply) => {
  const api = new KeepingApi();
  await apply(api);
  expect(api.applied?.['spec']).toMatchObject({ publishNotReadyAddresses: true });
});
