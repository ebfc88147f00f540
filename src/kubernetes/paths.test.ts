import { expect, test } from 'vitest';
import { budgetsPath, pathOf, pathOfAll, pathOfOne, podPath } from './paths.ts';

test('paths of collections, objects with and without a namespace, and pod subresources', () => {
  expect(pathOfAll('Node')).toBe('/api/v1/nodes');
  expect(pathOfAll('Pod')).toBe('/api/v1/pods');
  expect(pathOfAll('Lease', 'serving')).toBe('/apis/coordination.k8s.io/v1/namespaces/serving/leases');
  expect(pathOfOne('Node', undefined, 'n1')).toBe('/api/v1/nodes/n1');
  expect(pathOfOne('Namespace', undefined, 'kube-system')).toBe('/api/v1/namespaces/kube-system');
  expect(podPath({ namespace: 'serving', name: 'web' }, 'exec')).toBe('/api/v1/namespaces/serving/pods/web/exec');
});

test('the path of a draft contains its own API version', () => {
  const budget = { apiVersion: 'policy/v1beta1', kind: 'PodDisruptionBudget', metadata: { name: 'b', namespace: 'x' } };
  expect(pathOf(budget)).toBe('/apis/policy/v1beta1/namespaces/x/poddisruptionbudgets/b');
  expect(budgetsPath('policy/v1beta1', 'x')).toBe('/apis/policy/v1beta1/namespaces/x/poddisruptionbudgets');
  expect(pathOf({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'x' } })).toBe(
    '/api/v1/namespaces/x/configmaps/c',
  );
  expect(() => pathOf({ ...budget, kind: 'Gadget' })).toThrow('Gadget');
});

test('a name cannot change the path', () => {
  expect(pathOfOne('Pod', 'a/b', '../c?d')).toBe('/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd');
});
