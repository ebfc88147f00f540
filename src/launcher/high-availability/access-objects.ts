import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { AccessRule, HighAvailabilityDesign } from './design.ts';
import { clusterRoleName, haNames } from './names.ts';
import { labelsOf, metadataOf } from './object-parts.ts';

const rbac = 'rbac.authorization.k8s.io/v1';

/** Who the pods are in the cluster, and what they may do there: no more than they need. */
export function accessObjects(design: HighAvailabilityDesign): readonly KubeDraft[] {
  const { controllerAccount, balancerAccount } = haNames;
  return [
    ...account(design, controllerAccount, [...leaseRules, ...design.replicaRules]),
    ...account(design, balancerAccount, balancerRules),
    ...clusterAccess(design),
  ];
}

/** A lease cannot be made by name; everything else is about that one. */
const leaseRules: readonly AccessRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [haNames.lease], verbs: ['get', 'update'] },
];

/** Balancers find each other, and take the silent ones out of the Service. */
const balancerRules: readonly AccessRule[] = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'patch'] }];

function account(design: HighAvailabilityDesign, name: string, rules: readonly AccessRule[]): readonly KubeDraft[] {
  const metadata = metadataOf(design, name);
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: rbac, kind: 'Role', metadata, rules },
    {
      apiVersion: rbac,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: design.namespace }],
    },
  ];
}

/** Nodes belong to no namespace, and what is free on them depends on the pods of all. */
function clusterAccess(design: HighAvailabilityDesign): readonly KubeDraft[] {
  if (design.clusterReadRules.length === 0) return [];
  const { annotations, key, namespace } = design;
  const name = clusterRoleName(key);
  const metadata = { name, labels: labelsOf(design), ...(Object.keys(annotations).length > 0 && { annotations }) };
  return [
    { apiVersion: rbac, kind: 'ClusterRole', metadata, rules: design.clusterReadRules },
    {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: haNames.controllerAccount, namespace }],
    },
  ];
}
