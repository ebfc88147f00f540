/** As in a Role. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** Rights of a user. */
export interface UserRules {
  /** Default: `default`. */
  readonly namespace?: string;
  readonly rules?: readonly RoleRule[];
  readonly clusterRules?: readonly RoleRule[];
}

/** Status of a node that is only an object. */
export interface FakeNode {
  readonly cpus?: number;
  readonly memoryGb?: number;
  readonly gpus?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
}

/** Returns objects that grant a subject the rules. */
export function roleObjects(
  name: string,
  { namespace = 'default', rules = [], clusterRules = [] }: UserRules,
  subject: object,
): readonly object[] {
  const api = { apiVersion: 'rbac.authorization.k8s.io/v1' };
  const binding = (kind: string, roleName: string): object => ({
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: roleName },
    subjects: [subject],
  });
  const clusterName = `${namespace}-${name}`;
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { ...api, kind: 'Role', metadata: { name, namespace }, rules },
    { ...api, kind: 'RoleBinding', metadata: { name, namespace }, ...binding('Role', name) },
    ...(clusterRules.length === 0
      ? []
      : [
          { ...api, kind: 'ClusterRole', metadata: { name: clusterName }, rules: clusterRules },
          { ...api, kind: 'ClusterRoleBinding', metadata: { name: clusterName }, ...binding('ClusterRole', clusterName) },
        ]),
  ];
}

/** Returns a review of the first permission of a rule, in a namespace or, without one, everywhere. */
export function accessReview(user: string, { apiGroups, resources, verbs, resourceNames }: RoleRule, namespace?: string): object {
  const [resource, subresource] = resources[0]?.split('/') ?? [];
  const resourceAttributes = { namespace, verb: verbs[0], group: apiGroups[0], resource, subresource, name: resourceNames?.[0] };
  return { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec: { user, resourceAttributes } };
}

/** The objects of a fake node: its creation, its status, and its final taints. */
export function fakeNode(name: string, { cpus = 8, memoryGb = 32, gpus = 0, labels = {}, taints = [] }: FakeNode) {
  const capacity = {
    cpu: String(cpus),
    memory: `${memoryGb}Gi`,
    pods: '110',
    'ephemeral-storage': '100Gi',
    ...(gpus === 0 ? {} : { 'nvidia.com/gpu': String(gpus) }),
  };
  const now = new Date().toISOString();
  const ready = { type: 'Ready', status: 'True', reason: 'Test', message: '', lastHeartbeatTime: now, lastTransitionTime: now };
  return {
    object: { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } } },
    status: { capacity, allocatable: capacity, conditions: [ready] },
    taints,
  };
}

/** A disk, and the default storage class for claims. */
export function volumeObjects(name: string, folder: string, gb: number): readonly object[] {
  return [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'svc-test', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'kubernetes.io/no-provisioner',
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: `${gb}Gi` },
        accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'svc-test',
        hostPath: { path: folder },
      },
    },
  ];
}

/** A claim of the default class. */
export function claimObject(name: string, namespace: string, gb: number): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: `${gb}Gi` } } },
  };
}
