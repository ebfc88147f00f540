import { expect, test } from 'vitest';
import { aServiceSpec, aTask } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import type { ProviderCheck } from '../providers/provider.ts';
import { seededRandom } from '../shared/random.ts';
import { refuseSharedPorts } from './replica-ports.ts';

class Crowded extends FakeProvider {
  override check(): Promise<ProviderCheck> {
    const sharedPorts = 'this computer cannot isolate them (unshare: Operation not permitted)';
    return Promise.resolve({ enabled: true, summary: '', remedies: ['install podman'], details: [], sharedPorts });
  }
}

const place = new FakePlace(new FakeClock(), seededRandom(1), []);
const crowded = [new Crowded(place)];
const spacious = [new FakeProvider(place)];
const single = aServiceSpec({ replicaPolicy: { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 1 } });

test('several replicas on a fixed port are refused where machines share their ports', async () => {
  await expect(refuseSharedPorts(aTask(), crowded)).rejects.toMatchObject({
    code: 'SVC_ISOLATION',
    message: 'Several replicas would all listen on port 8080, as this computer cannot isolate them (unshare: Operation not permitted).',
    hint: 'Make run listen on $SVC_REPLICA_PORT; or: set replicas: 1; or: install podman',
  });
});

test.for<readonly [string, Promise<void>]>([
  ['where each machine has its own ports', refuseSharedPorts(aTask(), spacious)],
  ['for a program that listens where it is told', refuseSharedPorts(aTask({ run: 'serve --port ${SVC_REPLICA_PORT}' }), crowded)],
  ['for one replica', refuseSharedPorts(aTask({ service: single }), crowded)],
  ['for what is no service', refuseSharedPorts(aTask({ service: undefined }), crowded)],
])('nothing is refused %s', async ([, checked]) => {
  await expect(checked).resolves.toBeUndefined();
});
