/** Names of a controller's objects: there is one controller per namespace. */
export const haNames = {
  /** The object that owns all others. It holds the controller's facts about its surroundings. */
  anchor: 'svc-controller',
  controller: 'svc-controller',
  /** Also the name of its Role and RoleBinding. */
  controllerAccount: 'svc-controller',
  volume: 'svc-controller',
  lease: 'svc-controller',
  files: 'svc-controller-files',
  environment: 'svc-controller-environment',
  token: 'svc-control-token',
  balancer: 'svc-balancer',
  balancerAccount: 'svc-balancer',
  /** Also the name of its account, Role and RoleBinding. */
  checker: 'svc-health-checker',
  endpoints: 'svc-endpoints',
} as const;

/**
 * Name of the permissions for the whole Kubernetes cluster. It contains the key, because one Kubernetes cluster may
 * have several controllers.
 */
export function clusterRoleName(key: string): string {
  return `svc-controller-${key}`;
}

/** Label of every object of one controller, with its key. */
export const ownedLabel = 'svc-controller';

/** Label that selects the pods of a role. */
export const roleLabel = 'svc-role';

/** Paths and ids in the containers of the image that the Dockerfile builds. */
export const inContainer = {
  /** Uid of the image's user. */
  uid: 10_001,
  program: '/opt/svc',
  /** Mount point of the volume. The home is a folder below it: the group can access the mount point itself. */
  volume: '/var/lib/svc',
  home: '/var/lib/svc/home',
  files: '/etc/svc/files',
  anchor: '/etc/svc/controller',
  ownKubeconfig: '/var/lib/svc/home/own-cluster.kubeconfig',
  /** For other Kubernetes clusters than its own, if there are any. */
  otherKubeconfig: '/var/lib/svc/home/kubeconfig',
  tokenFolder: '/etc/svc/token',
  token: '/etc/svc/token/token',
  podFolder: '/etc/svc/pod',
  podLabels: '/etc/svc/pod/labels',
} as const;

/** Keys of the anchor's data. */
export const anchorData = { key: 'key', host: 'host.json', kubeconfig: 'kubeconfig' } as const;
