import { edgeProxyEndpoints, edgeProxyPodLabels } from '../../domain/edge-proxy/edge-proxy.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { AccessRule, HighAvailabilityDesign, HighAvailabilitySecrets, OwnerReference } from './design.ts';
import { clusterRoleName, haNames } from './names.ts';
import { labelsOf, metadataOf, ownedBy } from './object-parts.ts';
import { anchorObject, secretObjects, settingsDigest } from './settings-objects.ts';
import { workloadObjects } from './workload-objects.ts';

/**
 * A controller's objects, in an order in which they can be applied. The first owns the others, once `owner` identifies
 * it. Equal designs give equal objects. Without secrets, a repository may hold the result.
 */
export function manifests(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets | undefined,
  owner: OwnerReference | undefined,
): readonly KubeDraft[] {
  const objects = [
    anchorObject(design),
    ...accessObjects(design),
    ...(secrets === undefined ? [] : secretObjects(design, secrets)),
    endpointsService(design),
    ...workloadObjects(design, secrets === undefined ? undefined : settingsDigest(design, secrets)),
  ];
  return objects.map((object) => ownedBy(object, owner));
}

/**
 * Selects only balancers that health checkers let in, not ready pods: Kubernetes marks all pods of a node without
 * heartbeat as not ready, and would remove balancers that still serve.
 */
export function endpointsService(design: HighAvailabilityDesign): KubeDraft {
  const { first, last } = edgeProxyEndpoints;
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(design, haNames.endpoints),
    spec: {
      type: design.endpointService,
      publishNotReadyAddresses: true,
      selector: { ...edgeProxyPodLabels.role, [edgeProxyPodLabels.serving]: 'true' },
      ports: numbers.map((port) => ({
        name: `endpoint-${port}`,
        protocol: 'TCP',
        port,
        targetPort: port,
        // An endpoint has the same port number everywhere.
        ...(design.endpointService === 'NodePort' && { nodePort: port }),
      })),
    },
  };
}

const rbac = 'rbac.authorization.k8s.io/v1';

function accessObjects(design: HighAvailabilityDesign): readonly KubeDraft[] {
  const { controllerAccount, balancerAccount, checker } = haNames;
  return [
    ...account(design, controllerAccount, [...leaseRules, ...design.replicaRules]),
    ...account(design, balancerAccount, []),
    ...account(design, checker, checkerRules),
    ...clusterAccess(design),
  ];
}

/** RBAC cannot restrict `create` to a name. */
const leaseRules: readonly AccessRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [haNames.lease], verbs: ['get', 'update'] },
];

/**
 * Health checkers remove balancers that do not answer from the Service. RBAC cannot permit changes of labels alone,
 * without images, so balancers, which accept every client, get no such permission. Their Role stays, without rules: an
 * upgrade must remove the permission that older versions granted.
 */
const checkerRules: readonly AccessRule[] = [{ apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'patch'] }];

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

/** Nodes have no namespace, and their free resources depend on the pods of all namespaces. */
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
