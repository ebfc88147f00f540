import { expect, test } from 'vitest';
import { aPlaceableOffer, aReplica, aService, aServiceSpec, aTask } from '../../test/support/builders.ts';
import { rememberLateRefusal, rememberRefusal } from '../domain/placement/refusals.ts';
import type { ServiceSpec } from '../domain/task.ts';
import { serviceView } from './views.ts';

const endpointOf = (spec: Partial<ServiceSpec>): string =>
  serviceView(aService(), [], aTask({ service: aServiceSpec(spec) }), { reconciler: undefined, balancer: undefined, crashes: [] }, 2_000)
    .endpoint;

test('the endpoint of a service with TLS is https, otherwise http', () => {
  expect(endpointOf({})).toBe('http://127.0.0.1:30001');
  expect(endpointOf({ tls: { keyfile: '/k', certfile: '/c' } })).toBe('https://127.0.0.1:30001');
});

test('while a replica waits for a machine, its service lists each active refusal once', () => {
  const offer = aPlaceableOffer({ provider: 'aws', region: 'us-east-1', zone: undefined, instanceType: 'm7i.large' });
  const refused = { kind: 'quota', scope: 'whole-region', reason: 'Client.VolumeLimitExceeded: Volume limit exceeded' } as const;
  const late = rememberLateRefusal([], offer, refused, 0, 1_000);
  const refusals = rememberRefusal(late, { ...offer, region: 'us-west-2' }, { kind: 'price', scope: 'region', reason: 'No.' }, 1_000, 0);
  const service = aService({ memory: { ...aService().memory, placement: { refusals, starts: [] } } });
  const blockersAt = (now: number, ...states: readonly Parameters<typeof aReplica>[0][]) =>
    serviceView(service, states.map(aReplica), aTask(), { reconciler: undefined, balancer: undefined, crashes: [] }, now).blockers;
  expect(blockersAt(2_000, { state: 'READY', machineId: 'm' })).toBeUndefined();
  const waiting = { state: 'PROVISIONING', machineId: null } as const;
  expect(blockersAt(2_000, waiting)).toMatchObject([
    {
      provider: 'aws',
      region: 'us-east-1',
      cause: 'quota',
      scope: 'whole-region',
      covers: 'everything in us-east-1',
      reason: 'Client.VolumeLimitExceeded: Volume limit exceeded',
      attempts: 1,
      nextAttemptAt: '1970-01-01T00:01:01.000Z',
    },
    { region: 'us-west-2', cause: 'price', nextAttemptAt: '1970-01-01T00:05:01.000Z' },
  ]);
  expect(blockersAt(302_000, waiting)).toBeUndefined();
});
