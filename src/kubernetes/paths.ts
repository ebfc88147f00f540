import type { KubeDraft, KubeSelection, PodRef } from './kube-api.ts';
import type { PolicyVersion } from './policy-version.ts';

const kinds = {
  ConfigMap: { group: '/api/v1', plural: 'configmaps' },
  Event: { group: '/api/v1', plural: 'events' },
  Namespace: { group: '/api/v1', plural: 'namespaces' },
  Node: { group: '/api/v1', plural: 'nodes' },
  PersistentVolume: { group: '/api/v1', plural: 'persistentvolumes' },
  PersistentVolumeClaim: { group: '/api/v1', plural: 'persistentvolumeclaims' },
  Pod: { group: '/api/v1', plural: 'pods' },
  ResourceQuota: { group: '/api/v1', plural: 'resourcequotas' },
  Secret: { group: '/api/v1', plural: 'secrets' },
  Service: { group: '/api/v1', plural: 'services' },
  ServiceAccount: { group: '/api/v1', plural: 'serviceaccounts' },
  Deployment: { group: '/apis/apps/v1', plural: 'deployments' },
  Lease: { group: '/apis/coordination.k8s.io/v1', plural: 'leases' },
  ClusterRole: { group: '/apis/rbac.authorization.k8s.io/v1', plural: 'clusterroles' },
  ClusterRoleBinding: { group: '/apis/rbac.authorization.k8s.io/v1', plural: 'clusterrolebindings' },
  Role: { group: '/apis/rbac.authorization.k8s.io/v1', plural: 'roles' },
  RoleBinding: { group: '/apis/rbac.authorization.k8s.io/v1', plural: 'rolebindings' },
  SelfSubjectAccessReview: { group: '/apis/authorization.k8s.io/v1', plural: 'selfsubjectaccessreviews' },
  SelfSubjectRulesReview: { group: '/apis/authorization.k8s.io/v1', plural: 'selfsubjectrulesreviews' },
  StorageClass: { group: '/apis/storage.k8s.io/v1', plural: 'storageclasses' },
} as const;

/** Their API version depends on that of Kubernetes: the caller states it. */
const variedPlurals: Readonly<Record<string, string>> = { PodDisruptionBudget: 'poddisruptionbudgets' };

type KubeKind = keyof typeof kinds;

/** Path of the Kubernetes version. */
export const versionPath = '/version';

/** Path of all objects of a kind: in a namespace, or without one in the whole Kubernetes cluster. */
export function pathOfAll(kind: KubeKind, namespace?: string): string {
  const { group, plural } = kinds[kind];
  return `${group}${withinPath(namespace)}/${plural}`;
}

/** Path of one object. `namespace` undefined: its kind has none. */
export function pathOfOne(kind: KubeKind, namespace: string | undefined, name: string): string {
  return `${pathOfAll(kind, namespace)}/${encodeURIComponent(name)}`;
}

/** The path of an object, whether it exists or not. */
export function pathOf({ apiVersion, kind, metadata }: Pick<KubeDraft, 'apiVersion' | 'kind' | 'metadata'>): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const namespace = metadata['namespace'];
  return `${group}${withinPath(typeof namespace === 'string' ? namespace : undefined)}/${pluralOf(kind)}/${encodeURIComponent(metadata.name)}`;
}

/** Path of the PodDisruptionBudgets of a namespace. */
export function budgetsPath(version: PolicyVersion, namespace: string): string {
  return `/apis/${version}${withinPath(namespace)}/${pluralOf('PodDisruptionBudget')}`;
}

/** The path of a pod or its subresource. */
export function podPath({ namespace, name }: PodRef, below?: string): string {
  const path = pathOfOne('Pod', namespace, name);
  return below === undefined ? path : `${path}/${below}`;
}

/** Adds parameters to a path. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`;
}

/** Query parameters that select objects of a collection. */
export function selectionQuery({ labels = {}, labelSelector, fieldSelector }: KubeSelection): Readonly<Record<string, string>> {
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  if (labelSelector !== undefined && labelSelector !== '') parts.push(labelSelector);
  return {
    ...(parts.length === 0 ? {} : { labelSelector: parts.join(',') }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}

function withinPath(namespace: string | undefined): string {
  return namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
}

function pluralOf(kind: string): string {
  const plural = Object.entries(kinds).find(([name]) => name === kind)?.[1].plural ?? variedPlurals[kind];
  if (plural === undefined) throw new TypeError(`no path is known for ${kind}`);
  return plural;
}
