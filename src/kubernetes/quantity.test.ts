import { expect, test } from 'vitest';
import type { Pod } from './pod.ts';
import { parseQuantity, podRequests } from './quantity.ts';

test.each([
  ['500m', 0.5],
  ['2', 2],
  ['1.5', 1.5],
  ['128Mi', 134_217_728],
  ['1e3', 1000],
  ['12E', 12e18],
  ['1G', 1e9],
  ['100n', 1e-7],
])('%s is %s', (text, amount) => {
  expect(parseQuantity(text)).toBeCloseTo(amount, 12);
});

test.each(['x', '', '1Zi', '1 2'])('%j is no valid amount', (text) => {
  expect(parseQuantity(text)).toBeUndefined();
});

const cpu = (amount: string) => ({ resources: { requests: { cpu: amount } } });
const requested = (spec: Pod['spec'], status: Pod['status'] = {}): number | undefined =>
  podRequests({ metadata: { name: 'p', uid: 'p', resourceVersion: '1' }, status, ...(spec && { spec }) }).get('cpu');

test('container requests and pod overhead add up; limits count without requests', () => {
  expect(requested({ containers: [cpu('1'), cpu('500m')], overhead: { cpu: '250m' } })).toBe(1.75);
  expect(requested({ containers: [{ resources: { limits: { cpu: '2' } } }] })).toBe(2);
});

test('the largest init container counts if above the sum; sidecars count with both', () => {
  expect(requested({ containers: [cpu('1')], initContainers: [cpu('3'), cpu('2')] })).toBe(3);
  expect(requested({ containers: [cpu('1')], initContainers: [{ ...cpu('500m'), restartPolicy: 'Always' }, cpu('2')] })).toBe(2.5);
  expect(requested({ containers: [cpu('3')], initContainers: [{ ...cpu('500m'), restartPolicy: 'Always' }, cpu('2')] })).toBe(3.5);
});

test('pod-level requests replace container requests, and overhead is added', () => {
  const spec = { containers: [cpu('1'), cpu('2')], resources: { requests: { cpu: '4' } }, overhead: { cpu: '500m' } };
  expect(requested(spec)).toBe(4.5);
  expect(requested({ ...spec, resources: { requests: { memory: '1Gi' } } })).toBe(3.5);
});

/** A container's allocation as its node reports it, while `amount` CPUs are requested. */
const givenBy = (amount: string, conditions: NonNullable<Pod['status']>['conditions'] = []) => ({
  conditions,
  containerStatuses: [{ name: 'main', resources: { requests: { cpu: amount } }, allocatedResources: { cpu: amount } }],
});

test('during a resize the larger amount counts, except for an infeasible resize', () => {
  const spec = { containers: [{ name: 'main', ...cpu('4') }] };
  expect(requested(spec, givenBy('2'))).toBe(4);
  expect(requested(spec, givenBy('6'))).toBe(6);
  expect(requested(spec, givenBy('2', [{ type: 'PodResizePending', status: 'True', reason: 'Deferred' }]))).toBe(4);
  const refused = givenBy('2', [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }]);
  expect(requested(spec, refused)).toBe(2);
  // The node reports nothing about memory.
  const both = { containers: [{ name: 'main', resources: { requests: { cpu: '4', memory: '1Gi' } } }] };
  const pod: Pod = { metadata: { name: 'p', uid: 'p', resourceVersion: '1' }, spec: both, status: refused };
  expect(podRequests(pod).get('memory')).toBe(2 ** 30);
});
