import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeKubeApi } from '../../../test/support/fake-kube-api.ts';
import { freePort } from '../../../test/support/free-port.ts';
import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { podPath } from '../../kubernetes/paths.ts';
import { podAddress } from './pod-address.ts';
import { servicePath } from './pod-service.ts';

const pod = { namespace: 'n', name: 'p' };
const port = 8080;

/** A Kubernetes cluster that assigns every Service a node port on which no program answers. */
class UnresponsiveNodes extends FakeKubeApi {
  readonly #nodePort: number;

  constructor(nodePort: number) {
    super();
    this.#nodePort = nodePort;
    this.put(podPath(pod), { metadata: { ...pod, labels: { 'svc-key': 'k' } }, status: { podIP: '192.0.2.1', hostIP: '127.0.0.1' } });
  }

  override apply<T extends KubeObject>(path: string, object: KubeDraft): Promise<T> {
    return super.apply<T>(path, { ...object, spec: { ports: [{ nodePort: this.#nodePort }] } });
  }
}

/** How long `podAddress` takes to choose the port-forward, ms. */
async function waitedForForward(api: UnresponsiveNodes): Promise<number> {
  const clock = new FakeClock();
  let path: string | undefined;
  const found = podAddress(port, {
    api,
    pod,
    reach: 'auto',
    connectionsInPod: () => Promise.resolve('   0: 00000000:1F90 00000000:0000 0A 0\n'),
    routes: () => ({ v4: 'head\nlo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n', v6: '' }),
    forward: () => Promise.resolve('/forward.sock'),
    clock,
  }).then((address) => (path = address.kind === 'forward' ? address.path : undefined));
  const tookMs = await clock.advanceUntil(() => path === '/forward.sock');
  await found;
  expect(api.objects.has(servicePath(pod, port))).toBe(false);
  return tookMs;
}

test('nodes get time to apply a new node port, but not a known one', async () => {
  const api = new UnresponsiveNodes(await freePort());
  expect(await waitedForForward(api)).toBeGreaterThanOrEqual(5_000);
  api.put(servicePath(pod, port), {});
  expect(await waitedForForward(api)).toBeLessThan(1_000);
});
