import type { Accelerator, ResourceAlternatives } from './task.ts';

/** `config.yaml` below SVC_HOME after parsing, defaults filled in. */
export interface Config {
  readonly serve: { readonly controller: ControllerConfig };
  readonly local: LocalConfig;
  readonly aws: AwsConfig;
  readonly kubernetes: KubernetesConfig;
  /** Providers that may be used, lower case; undefined allows all. */
  readonly allowedClouds: readonly string[] | undefined;
}

/** Settings of the controller. They apply to the next controller that starts, never to a running one. */
export interface ControllerConfig {
  /** The machine for the controller; undefined is the default (this machine, or a small on-demand one). */
  readonly resources: ResourceAlternatives | undefined;
  readonly highAvailability: boolean;
  /** `postgres://…`, shared by several daemons; undefined: a file below SVC_HOME. Holds a password: never print it. */
  readonly database: string | undefined;
  /** For `highAvailability`: the controller's image, built from the project's Dockerfile. */
  readonly image: string | undefined;
  /** For `highAvailability`: number of balancers that serve each endpoint, 1 to 16. */
  readonly balancers: number;
  /** For `highAvailability`: the type of the Service in front of the endpoints. */
  readonly endpointService: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  /** How long after the end of the last service the controller stops by itself; undefined: never. */
  readonly autostop: { readonly idleMinutes: number; readonly down: boolean } | undefined;
}

const cloudSections = ['aws'] as const satisfies readonly (keyof Config)[];

/** The configuration section of a cloud; undefined for other kinds of provider. */
export function cloudSection(provider: string): (typeof cloudSections)[number] | undefined {
  return cloudSections.find((name) => name === provider);
}

/** Settings of the provider `aws`. Fields that are absent come from the AWS SDK's own configuration. */
export interface AwsConfig {
  /** A profile of `~/.aws/config`; undefined: `AWS_PROFILE` or the default one. */
  readonly profile: string | undefined;
  /** The only regions to use; undefined: all regions of the catalogue. */
  readonly regions: readonly string[] | undefined;
  /** Name tag or id of the VPC to use in every region; undefined: the default one. */
  readonly vpc: string | undefined;
  /** Whether to connect to machines at their private addresses, as when the controller is in the same VPC. */
  readonly useInternalIps: boolean;
  /** Source addresses or ranges of this machine's SSH connections; undefined: its address as AWS sees it. */
  readonly sshFrom: readonly string[] | undefined;
  /** Name of the instance profile for a controller on AWS; undefined: svc creates one. */
  readonly controllerRole: string | undefined;
}

/** Settings of the provider `kubernetes`. */
export interface KubernetesConfig extends KubernetesContextConfig {
  /** The only contexts to use; undefined: the current one of the kubeconfig. `all`: every context in it. */
  readonly allowedContexts: readonly string[] | 'all' | undefined;
  /** Settings that differ in some contexts, by the name of the context. */
  readonly contexts: Readonly<Record<string, Partial<KubernetesContextConfig>>>;
}

/** Settings of one Kubernetes cluster. */
export interface KubernetesContextConfig {
  /** Namespace of all objects; undefined: the namespace of the context. */
  readonly namespace: string | undefined;
  /** Image for replicas whose task names none. */
  readonly image: string;
  /** Service account of the pods; undefined: the namespace's default. */
  readonly serviceAccount: string | undefined;
  readonly imagePullSecrets: readonly string[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** In the format of Kubernetes. */
  readonly tolerations: readonly Readonly<Record<string, unknown>>[];
  /** Partial pod that is merged into every pod. */
  readonly podConfig: Readonly<Record<string, unknown>>;
  /** Labels of every object. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What adds nodes for waiting pods (`gke`, `karpenter`, `generic`): present room is no limit. undefined: nothing. */
  readonly autoscaler: string | undefined;
  /** How long a pod may wait for room, s; undefined: 10, with an autoscaler 600. */
  readonly provisionTimeoutSeconds: number | undefined;
  readonly reach: KubernetesReach;
  /** Prices in US dollars per hour for the resources that a pod requests; an absent price is 0. */
  readonly price: { readonly cpu: number; readonly memoryGb: number; readonly accelerators: Readonly<Record<string, number>> };
  /** Storage class of the controller's volume; undefined: the default of the Kubernetes cluster. */
  readonly storageClass: string | undefined;
}

/** `auto`: the first of these that reaches the pod: its address, a node port, a port-forward by the API server. */
export const kubernetesReaches = ['auto', 'pod', 'node-port', 'load-balancer', 'port-forward'] as const;
export type KubernetesReach = (typeof kubernetesReaches)[number];

/** Kinds of isolation that the local provider supports; `auto` tries them in order. */
export const localIsolations = ['auto', 'root', 'userns', 'bwrap', 'podman', 'container', 'none'] as const;
export type LocalIsolation = (typeof localIsolations)[number];

/** Settings of the local provider. */
export interface LocalConfig {
  /** At least one. */
  readonly regions: readonly LocalRegion[];
  readonly isolation: LocalIsolation;
  /** Maximum number of processes and threads of one machine; undefined: the default of `src/node/limits.sh`. */
  readonly maxProcesses: number | undefined;
  /** GPUs to offer instead of the detected ones; undefined: detect them. */
  readonly gpus: Accelerator | undefined;
  /** Zones that play spot machines on this computer; none by default. */
  readonly spotZones: readonly LocalSpotZone[];
  /** Pretended price of its other machines, US dollars. */
  readonly hourlyUsd: number;
}

/** A simulated zone of spot machines. When `room` falls below its machines, it reclaims the newest of them. */
export interface LocalSpotZone {
  readonly name: string;
  readonly region: string;
  readonly room: number;
  readonly hourlyUsd: number;
  /** Time from the interruption notice to the end of a machine, s; 0: it ends without a notice. */
  readonly reclaimAfterSeconds: number;
  /** Time from a rebalance recommendation to the notice, or to the end without one, s; 0: there is no recommendation. */
  readonly rebalanceSeconds: number;
}

/** A simulated region of this machine. `refusing`: no new machines; `lost`: its machines are gone too. */
export interface LocalRegion {
  readonly name: string;
  readonly state: 'up' | 'refusing' | 'lost';
  readonly refuseWith: 'capacity' | 'quota';
  /** Limit of machines; undefined: as many as there is room for. */
  readonly maxMachines: number | undefined;
}

/** Settings when there is no configuration file. */
export const defaultConfig: Config = {
  serve: {
    controller: {
      resources: undefined,
      highAvailability: false,
      database: undefined,
      image: undefined,
      balancers: 2,
      endpointService: 'ClusterIP',
      autostop: { idleMinutes: 10, down: false },
    },
  },
  local: {
    regions: [{ name: 'local', state: 'up', refuseWith: 'capacity', maxMachines: undefined }],
    isolation: 'auto',
    maxProcesses: undefined,
    gpus: undefined,
    spotZones: [],
    hourlyUsd: 0,
  },
  aws: { profile: undefined, regions: undefined, vpc: undefined, useInternalIps: false, sshFrom: undefined, controllerRole: undefined },
  kubernetes: {
    allowedContexts: undefined,
    contexts: {},
    namespace: undefined,
    image: 'docker.io/library/python:3.12-slim',
    serviceAccount: undefined,
    imagePullSecrets: [],
    nodeSelector: {},
    tolerations: [],
    podConfig: {},
    labels: {},
    annotations: {},
    autoscaler: undefined,
    provisionTimeoutSeconds: undefined,
    reach: 'auto',
    price: { cpu: 0, memoryGb: 0, accelerators: {} },
    storageClass: undefined,
  },
  allowedClouds: undefined,
};

/** A pool of the user's SSH hosts. */
export interface SshPool {
  /** Name as in `infra: ssh/NAME`. */
  readonly name: string;
  /** The file that defines the pool, for messages. */
  readonly file: string;
  /** At least one. */
  readonly hosts: readonly SshHost[];
}

/** One SSH host of a pool. Absent fields come from the user's own `~/.ssh/config`. */
export interface SshHost {
  /** An address, a name, or an alias of `~/.ssh/config`; unique within its pool. */
  readonly host: string;
  readonly user: string | undefined;
  readonly port: number | undefined;
  readonly identityFile: string | undefined;
  /** Jump host as `user@host:port`, as for `ssh -J`. */
  readonly proxyJump: string | undefined;
  /** Hourly cost that the owner assigns, US dollars; 0 when none is given. */
  readonly hourlyUsd: number;
  /** Maximum number of processes and threads of one machine; undefined: the default of `src/node/limits.sh`. */
  readonly maxProcesses?: number | undefined;
}
