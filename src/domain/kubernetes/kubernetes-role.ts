/** One rule of a role: the verbs that are allowed on some resources. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** Rights that svc needs for replicas in their namespace. The reason for each precedes it. */
export const replicaRules: readonly RoleRule[] = [
  // Server-side apply is a patch, and a create when the object does not exist.
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  // For setup, run, logs and files. From Kubernetes 1.30 on a WebSocket is a `get`. An older API server requires
  // `create` where the client does not.
  { apiGroups: [''], resources: ['pods/exec', 'pods/portforward'], verbs: ['create', 'get'] },
  // The owner object of all other objects.
  { apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'delete', 'patch'] },
  // Routes to ports of pods: node ports, load balancers.
  { apiGroups: [''], resources: ['services'], verbs: ['create', 'delete', 'get', 'list', 'patch'] },
  // Events that explain why a pod does not start, or why the Kubernetes cluster removed it.
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
];

/** Lets svc report its probes' results as a condition of pods. */
export const readinessRule: RoleRule = { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] };

/** Optional rights for drains. Users with Kubernetes' own role `admin` lack the first one, so they cannot grant it. */
export const drainRules: readonly RoleRule[] = [
  // Lets svc mark a replica's pods as ready or not ready. Without it a pod is ready as soon as its containers run.
  readinessRule,
  // Lets drains and evictions end one replica at a time. Without it they end all replicas of a node at once.
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['create', 'delete', 'list', 'patch'] },
];

/** Optional rights: svc works without them. */
export const foresightRules: readonly RoleRule[] = [
  // Lets preflight checks report a missing volume. Without it the scheduler reports it for the first replica.
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] },
  // Lets svc see when a quota that refused a pod has room again. Without it svc retries after a delay.
  { apiGroups: [''], resources: ['resourcequotas'], verbs: ['list', 'watch'] },
  ...drainRules,
];

/** Lets svc check in advance for room and GPU types, and detect lost nodes. Without it the scheduler decides. */
export const clusterReadRules: readonly RoleRule[] = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
];

const roleName = 'svc-replicas';

/** The roles as YAML for `kubectl apply`, to be bound to a service account or user. */
export function roleYaml(namespace = 'default'): string {
  return [
    `# What svc needs on a cluster for replicas in the namespace ${namespace}, and no more. Bind it to the account that runs svc, for instance:`,
    `#   kubectl -n ${namespace} create rolebinding ${roleName} --role=${roleName} --user=NAME`,
    `#   kubectl create clusterrolebinding ${roleName} --clusterrole=${roleName} --user=NAME`,
    ...roleLines('Role', namespace, [...replicaRules, ...foresightRules]),
    '---',
    '# Only read. Without it svc cannot tell beforehand whether there is room, and knows no GPUs.',
    ...roleLines('ClusterRole', undefined, clusterReadRules),
    '',
  ].join('\n');
}

const list = (values: readonly string[]): string => `[${values.map((value) => (value === '' ? "''" : value)).join(', ')}]`;

function roleLines(kind: string, namespace: string | undefined, rules: readonly RoleRule[]): readonly string[] {
  return [
    'apiVersion: rbac.authorization.k8s.io/v1',
    `kind: ${kind}`,
    'metadata:',
    `  name: ${roleName}`,
    ...(namespace === undefined ? [] : [`  namespace: ${namespace}`]),
    'rules:',
    ...rules.flatMap(({ apiGroups, resources, verbs }) => [
      `  - apiGroups: ${list(apiGroups)}`,
      `    resources: ${list(resources)}`,
      `    verbs: ${list(verbs)}`,
    ]),
  ];
}
