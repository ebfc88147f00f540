import type { Config, ControllerConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import { clusterReadRules, foresightRules, replicaRules, type RoleRule } from '../../domain/kubernetes/kubernetes-role.ts';
import { podPrice } from '../../domain/price.ts';
import type { PortableFile } from '../../providers/provider.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { haNames } from './names.ts';
import type { KubernetesSite } from './site.ts';

/** One rule of a Role, optionally restricted to objects with certain names. */
export interface AccessRule extends RoleRule {
  readonly resourceNames?: readonly string[];
}

/** The owner of all other objects: Kubernetes removes them with it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** All data from which the objects of a controller in a Kubernetes cluster follow. Plain data. */
export interface HighAvailabilityDesign {
  /** Tag `svc-owner` of all that the controller launches. */
  readonly key: string;
  /**
   * The user's name of the context. The controller's pods use the same name, so that locations have the same names
   * everywhere.
   */
  readonly context: string;
  readonly namespace: string;
  readonly image: string;
  readonly imagePullSecrets: readonly string[];
  /** `sqlite`: one controller with a volume; `postgresql`: two controllers without a volume, of which one leads. */
  readonly database: 'sqlite' | 'postgresql';
  /** undefined: the default request, and no limit. */
  readonly cpus: number | undefined;
  readonly memoryGb: number | undefined;
  readonly diskGb: number;
  /** undefined: the Kubernetes cluster's default. */
  readonly storageClass: string | undefined;
  readonly balancers: number;
  readonly endpointService: ControllerConfig['endpointService'];
  /** Name or address at which clients reach endpoints. */
  readonly publicHost: string;
  /** US dollars per hour for all pods together. */
  readonly hourlyUsd: number;
  /** On every object, besides our own labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** The version of PodDisruptionBudget that the Kubernetes cluster has. */
  readonly policyVersion: 'policy/v1' | 'policy/v1beta1';
  /**
   * Permissions that replicas need in the namespace. `clusterReadRules`: permissions to read the free resources of the
   * whole Kubernetes cluster.
   */
  readonly replicaRules: readonly AccessRule[];
  readonly clusterReadRules: readonly AccessRule[];
}

/** Data that only Secrets may contain. */
export interface HighAvailabilitySecrets {
  /** Shared by the controller and its balancers. */
  readonly token: string;
  readonly files: readonly PortableFile[];
  /** Variables of the controller, such as the address of its database. */
  readonly environment: Readonly<Record<string, string>>;
}

/** GB; default size of a controller's volume, as on a controller's machine. */
const defaultDiskGb = 200;

/** Default resources of a controller's and a balancer's pod in the cost: their requests. */
const controllerShare = { cpus: 0.25, memoryGb: 1 } as const;
const balancerShare = { cpus: 0.25, memoryGb: 0.5 } as const;

/** Facts about the Kubernetes cluster. */
export interface ClusterFacts {
  readonly key: string;
  readonly policyVersion: HighAvailabilityDesign['policyVersion'];
  /** Name or address of the endpoints' Service from outside; undefined when it can be reached only from inside. */
  readonly outsideHost: string | undefined;
}

/**
 * The design that follows from the configuration and the facts about a Kubernetes cluster. Throws
 * SVC_NO_CONTROLLER_IMAGE when no image is configured.
 */
export function designOf(config: Config, { context, namespace }: KubernetesSite, known: ClusterFacts): HighAvailabilityDesign {
  const { image, balancers, endpointService, resources } = config.serve.controller;
  const database = databaseOf(config);
  if (image === undefined) throw noImage();
  const contextConfig = kubernetesContextConfig(config.kubernetes, context);
  const requested = resources?.choices.find(({ cloud }) => cloud === 'kubernetes' || cloud === undefined) ?? resources?.choices[0];
  const cpus = requested?.cpus?.value;
  const memoryGb = requested?.memory?.value;
  const controllers = database === undefined ? 1 : 2;
  const price = (share: { readonly cpus: number; readonly memoryGb: number }): number =>
    podPrice(contextConfig.price, { ...share, accelerator: undefined });
  return {
    key: known.key,
    context,
    namespace,
    image,
    imagePullSecrets: contextConfig.imagePullSecrets,
    database: database === undefined ? 'sqlite' : 'postgresql',
    cpus,
    memoryGb,
    diskGb: requested?.diskSizeGb ?? defaultDiskGb,
    storageClass: contextConfig.storageClass,
    balancers,
    endpointService,
    publicHost: known.outsideHost ?? insideHost(namespace),
    hourlyUsd:
      controllers * price({ cpus: cpus ?? controllerShare.cpus, memoryGb: memoryGb ?? controllerShare.memoryGb }) +
      balancers * price(balancerShare),
    labels: contextConfig.labels,
    annotations: contextConfig.annotations,
    policyVersion: known.policyVersion,
    replicaRules: [...replicaRules, ...foresightRules],
    clusterReadRules,
  };
}

/**
 * Address of the shared state database, as controllers reach it; undefined: a file on a volume. As everywhere, the
 * environment has precedence over the file.
 */
export function databaseOf({ serve }: Config): string | undefined {
  return envVar('SVC_DATABASE') ?? serve.controller.database;
}

/** Address of the endpoints inside the Kubernetes cluster. */
function insideHost(namespace: string): string {
  return `${haNames.endpoints}.${namespace}.svc`;
}

function noImage(): SvcError {
  return new SvcError(
    'SVC_NO_CONTROLLER_IMAGE',
    'serve.controller.high_availability is true, and serve.controller.image names no image to run.',
    {
      hint: 'Make one where the Dockerfile is, and name it in config.yaml: docker build -t REGISTRY/svc:TAG . && docker push REGISTRY/svc:TAG; serve: {controller: {image: REGISTRY/svc:TAG}}',
    },
  );
}
