/** Names of a controller's objects: there is one controller per namespace. */
export const haNames = {
  /** The object that owns all others, and holds what a controller must know of its surroundings. */
  anchor: 'svc-controller',
  controller: 'svc-controller',
  /** Also its Role and RoleBinding. */
  controllerAccount: 'svc-controller',
  volume: 'svc-controller',
  lease: 'svc-controller',
  files: 'svc-controller-files',
  environment: 'svc-controller-environment',
  token: 'svc-control-token',
  balancer: 'svc-balancer',
  balancerAccount: 'svc-balancer',
  endpoints: 'svc-endpoints',
} as const;

/** Of the rights that hold in the whole cluster: several controllers may be in one cluster. */
export function clusterRoleName(key: string): string {
  return `svc-controller-${key}`;
}

/** Label of every object of one controller, with its key. */
export const ownedLabel = 'svc-controller';

/** Label of pods, by which they are selected. */
export const roleLabel = 'svc-role';

/** Where things are in the containers of the image that the Dockerfile makes. */
export const inContainer = {
  /** Of the image's user. */
  uid: 10_001,
  program: '/opt/svc',
  /** The volume. The home lies below, as the folder that a volume is mounted at is open to its group. */
  volume: '/var/lib/svc',
  home: '/var/lib/svc/home',
  files: '/etc/svc/files',
  anchor: '/etc/svc/controller',
  ownKubeconfig: '/var/lib/svc/home/own-cluster.kubeconfig',
  /** Of the clusters beside its own, where there are any. */
  otherKubeconfig: '/var/lib/svc/home/kubeconfig',
  tokenFolder: '/etc/svc/token',
  token: '/etc/svc/token/token',
} as const;

/** Keys of the anchor's data. */
export const anchorData = { key: 'key', host: 'host.json', kubeconfig: 'kubeconfig' } as const;
