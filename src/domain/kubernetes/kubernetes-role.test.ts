import { expect, test } from 'vitest';
import { clusterReadRules, foresightRules, replicaRules, roleYaml } from './kubernetes-role.ts';

test('the roles are printed as YAML for kubectl with their bindings', () => {
  const text = roleYaml('serving');
  expect(text).toContain('kubectl -n serving create rolebinding svc-replicas --role=svc-replicas --user=NAME');
  expect(text).toContain('kind: Role\nmetadata:\n  name: svc-replicas\n  namespace: serving\nrules:\n');
  expect(text).toContain("  - apiGroups: ['']\n    resources: [pods]\n    verbs: [create, delete, get, list, patch, watch]\n");
  expect(text).toContain(
    "  - apiGroups: ['']\n    resources: [persistentvolumeclaims]\n    verbs: [get]\n  - apiGroups: ['']\n    resources: [resourcequotas]\n    verbs: [list, watch]\n",
  );
  expect(text).toContain('  - apiGroups: [policy]\n    resources: [poddisruptionbudgets]\n    verbs: [create, delete, list, patch]\n---\n');
  expect(text).toContain('kind: ClusterRole\nmetadata:\n  name: svc-replicas\nrules:\n');
});

test('the roles have no secrets, no wildcards, and read-only rights on the Kubernetes cluster', () => {
  const all = [...replicaRules, ...foresightRules, ...clusterReadRules];
  expect(
    all.flatMap(({ resources, verbs }) => [...resources, ...verbs]).filter((word) => /\*|secrets|roles|escalate|bind/.test(word)),
  ).toEqual([]);
  expect([...new Set(clusterReadRules.flatMap(({ verbs }) => verbs))].toSorted()).toEqual(['get', 'list', 'watch']);
});
