/** One rule of a role: what may be done with which resources. */
export interface RoleRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** What replicas need in their namespace; the reason stands with each. */
export const replicaRules: readonly RoleRule[] = [
  // Server-side apply is a patch, and a creation where there is nothing yet.
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  // setup, run, logs, files. From Kubernetes 1.30 on a WebSocket is a `get`; an older API server asks for `create` where the client does not.
  { apiGroups: [''], resources: ['pods/exec', 'pods/portforward'], verbs: ['create', 'get'] },
  // The object that all others belong to.
  { apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'delete', 'patch'] },
  // Ways to ports of pods: node ports, load balancers.
  { apiGroups: [''], resources: ['services'], verbs: ['create', 'delete', 'get', 'list', 'patch'] },
  // What the cluster says of a pod that does not start, or that it took.
  { apiGroups: [''], resources: ['events'], verbs: ['list'] },
];

/** What tells beforehand that a volume is not there. Without it the scheduler says so, of the first replica. */
export const foresightRules: readonly RoleRule[] = [{ apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] }];

/** What tells beforehand whether there is room, which GPUs there are, and that a node was lost. Without it the scheduler decides. */
export const clusterReadRules: readonly RoleRule[] = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
];

const roleName = 'svc-replicas';

/** The roles as YAML for `kubectl apply`, for a service account or user to be bound to. */
export function roleYaml(namespace = 'default'): string {
  return [
    `# What svc needs on a cluster for replicas in the namespace ${namespace}, and no more. Bind it to whoever runs svc, for instance:`,
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
