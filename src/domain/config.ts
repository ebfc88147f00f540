import type { Accelerator, ResourceAlternatives } from './task.ts';

/** `config.yaml` below SVC_HOME after parsing, defaults filled in. */
export interface Config {
  readonly serve: { readonly controller: ControllerConfig };
  readonly local: LocalConfig;
  readonly aws: AwsConfig;
  readonly kubernetes: KubernetesConfig;
  /** Places that may be used, lower case; undefined allows all. */
  readonly allowedClouds: readonly string[] | undefined;
}

/** Settings of the controller. They apply to the next controller that starts, never to a running one. */
export interface ControllerConfig {
  /** The machine it runs on; undefined is the default (this machine, or a small on-demand one). */
  readonly resources: ResourceAlternatives | undefined;
  readonly highAvailability: boolean;
  /** `postgres://…`, with which several daemons share one state; undefined: a file below SVC_HOME. Holds a password: never shown. */
  readonly database: string | undefined;
  /** For `highAvailability`: the image of the controller, which the project's Dockerfile makes. */
  readonly image: string | undefined;
  /** For `highAvailability`: how many balancers serve each endpoint; 1 to 16. */
  readonly balancers: number;
  /** For `highAvailability`: the type of the Service that leads to the endpoints. */
  readonly endpointService: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  /** When it stops by itself after the last service ended; undefined: never. */
  readonly autostop: { readonly idleMinutes: number; readonly down: boolean } | undefined;
}

/** Settings of the place `aws`. What is absent is for the AWS SDK's own configuration to say. */
export interface AwsConfig {
  /** A profile of `~/.aws/config`; undefined: `AWS_PROFILE` or the default one. */
  readonly profile: string | undefined;
  /** The only regions to use; undefined: all of the catalogue. */
  readonly regions: readonly string[] | undefined;
  /** Name tag or id of the VPC to use in every region; undefined: the default one. */
  readonly vpc: string | undefined;
  /** Reach machines at their private addresses, as when the controller is in the same VPC. */
  readonly useInternalIps: boolean;
  /** Addresses or ranges from which this machine's SSH connections come; undefined: its address as AWS sees it. */
  readonly sshFrom: readonly string[] | undefined;
  /** Name of the instance profile for a controller on AWS; undefined: one is made. */
  readonly controllerRole: string | undefined;
}

/** Settings of the place `kubernetes`. */
export interface KubernetesConfig extends KubernetesContextConfig {
  /** The only contexts to use; undefined: the current one of the kubeconfig. `all`: every one there is. */
  readonly allowedContexts: readonly string[] | 'all' | undefined;
  /** What differs in some contexts, by their names. */
  readonly contexts: Readonly<Record<string, Partial<KubernetesContextConfig>>>;
}

/** How a cluster is used. */
export interface KubernetesContextConfig {
  /** undefined: the one of the context. */
  readonly namespace: string | undefined;
  /** For replicas whose task names none. */
  readonly image: string;
  /** That pods run as; undefined: the namespace's default. */
  readonly serviceAccount: string | undefined;
  readonly imagePullSecrets: readonly string[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** As Kubernetes writes them. */
  readonly tolerations: readonly Readonly<Record<string, unknown>>[];
  /** Merged into every pod. */
  readonly podConfig: Readonly<Record<string, unknown>>;
  /** On every object. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** What adds nodes to the cluster when pods wait for room (`gke`, `karpenter`, `generic`), so that what the nodes hold now is no limit; undefined: nothing. */
  readonly autoscaler: string | undefined;
  /** How long a pod may wait for room, s; undefined: 10, with an autoscaler 600. */
  readonly provisionTimeoutSeconds: number | undefined;
  /** How requests reach pods. */
  readonly reach: KubernetesReach;
  /** US dollars per hour of what a pod asks for; absent is 0. */
  readonly price: { readonly cpu: number; readonly memoryGb: number; readonly accelerators: Readonly<Record<string, number>> };
  /** Of the controller's volume; undefined: the cluster's default. */
  readonly storageClass: string | undefined;
}

/** `auto` takes the first way that is found to lead to the pod: its address, a node's port, and else a forward through the API server. */
export const kubernetesReaches = ['auto', 'pod', 'node-port', 'load-balancer', 'port-forward'] as const;
export type KubernetesReach = (typeof kubernetesReaches)[number];

/** Kinds of isolation that the local provider knows; `auto` tries them in order. */
export const localIsolations = ['auto', 'root', 'userns', 'bwrap', 'podman', 'container', 'none'] as const;
export type LocalIsolation = (typeof localIsolations)[number];

/** Settings of the local provider. */
export interface LocalConfig {
  /** At least one. */
  readonly regions: readonly LocalRegion[];
  readonly isolation: LocalIsolation;
  /** What to offer instead of the GPUs that are found; undefined: detect them. */
  readonly gpus: Accelerator | undefined;
}

/** A region this machine pretends to have. `refusing`: no new machines; `lost`: its machines are gone as well. */
export interface LocalRegion {
  readonly name: string;
  readonly state: 'up' | 'refusing' | 'lost';
  /** What a refusal looks like. */
  readonly refuseWith: 'capacity' | 'quota';
  /** undefined: as many as there is room for. */
  readonly maxMachines: number | undefined;
}

/** What holds when there is no configuration file. */
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
    gpus: undefined,
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
