/** Names of a controller's objects: there is one controller per namespace. */
export const haNames = {
  /** Owns all others, and holds the controller's facts about its surroundings. */
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

/** Its permissions apply to the whole Kubernetes cluster, which may have several controllers: hence the key. */
export function clusterRoleName(key: string): string {
  return `svc-controller-${key}`;
}

/** Setting of the controller's volume, for messages. */
export const storageClassSetting = 'kubernetes.high_availability.storage_class_name';

/** Label of all objects of a controller, with its key. */
export const ownedLabel = 'svc-controller';

/** Label that selects the pods of a role. */
export const roleLabel = 'svc-role';

/** Paths and ids in the containers of the image that the Dockerfile builds. */
export const inContainer = {
  uid: 10_001,
  program: '/opt/svc',
  /** Mount point of the volume. The home is below it, because the group can access the mount point itself. */
  volume: '/var/lib/svc',
  home: '/var/lib/svc/home',
  files: '/etc/svc/files',
  anchor: '/etc/svc/controller',
  ownKubeconfig: '/var/lib/svc/home/own-cluster.kubeconfig',
  /** For Kubernetes clusters other than its own. */
  otherKubeconfig: '/var/lib/svc/home/kubeconfig',
  tokenFolder: '/etc/svc/token',
  token: '/etc/svc/token/token',
  podFolder: '/etc/svc/pod',
  podLabels: '/etc/svc/pod/labels',
} as const;

/** Keys of the anchor's data. */
export const anchorData = { key: 'key', host: 'host.json', kubeconfig: 'kubeconfig' } as const;
