import { expect, test } from 'vitest';
import { aServiceSpec, aTask } from '../../test/support/builders.ts';
import { goodCheck } from '../../test/support/providers.ts';
import type { ProviderState } from './providers.ts';
import { followsPort, refuseSharedPorts, servedPorts } from './machine-spec.ts';

const sharedPorts = 'this computer cannot isolate them (unshare: Operation not permitted)';
const statesWith = (check: Partial<ProviderState['check']>): readonly ProviderState[] => [
  { name: 'local', provider: undefined, check: { ...goodCheck, ...check } },
];
const crowded = statesWith({ sharedPorts, remedies: ['install podman'] });
const single = aServiceSpec({ replicaPolicy: { ...aServiceSpec().replicaPolicy, minReplicas: 1, maxReplicas: 1 } });

test('several replicas on a fixed port are refused where machines share ports', () => {
  expect(() => refuseSharedPorts(aTask(), crowded)).toThrow(
    expect.objectContaining({
      code: 'SVC_ISOLATION',
      message: 'Several replicas would all listen on port 8080, as this computer cannot isolate them (unshare: Operation not permitted).',
      hint: 'Make run listen on $SVC_REPLICA_PORT; or: set replicas: 1; or: install podman',
    }),
  );
});

test.for<readonly [string, () => void]>([
  ['where each machine has its own ports', () => refuseSharedPorts(aTask(), statesWith({}))],
  ['where the provider is disabled', () => refuseSharedPorts(aTask(), statesWith({ enabled: false, sharedPorts }))],
  ['for a program that listens on the assigned port', () => refuseSharedPorts(aTask({ run: 'serve --port ${SVC_REPLICA_PORT}' }), crowded)],
  ['for one replica', () => refuseSharedPorts(aTask({ service: single }), crowded)],
  ['without a service section', () => refuseSharedPorts(aTask({ service: undefined }), crowded)],
])('nothing is refused %s', ([, check]) => {
  expect(check).not.toThrow();
});

test("a machine serves the service's port and the ports of its resources", () => {
  expect(servedPorts(aTask(), { ports: [8080, 9090] })).toEqual([8080, 9090]);
  expect(servedPorts(aTask(), undefined)).toEqual([8080]);
  expect(servedPorts(aTask({ service: undefined }), { ports: [22] })).toEqual([22]);
  expect([followsPort(aTask()), followsPort(aTask({ run: 'serve -p $SVC_REPLICA_PORT' }))]).toEqual([false, true]);
});
