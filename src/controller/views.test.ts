import { expect, test } from 'vitest';
import { aService, aServiceSpec, aTask } from '../../test/support/builders.ts';
import type { ServiceSpec } from '../domain/task.ts';
import { serviceView } from './views.ts';

const endpointOf = (spec: Partial<ServiceSpec>): string =>
  serviceView(aService(), [], aTask({ service: aServiceSpec(spec) }), { reconciler: undefined, balancer: undefined }, 2_000).endpoint;

test('the endpoint of a service with TLS is https, else http', () => {
  expect(endpointOf({})).toBe('http://127.0.0.1:30001');
  expect(endpointOf({ tls: { keyfile: '/k', certfile: '/c' } })).toBe('https://127.0.0.1:30001');
});
