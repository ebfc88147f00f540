import type { Config, ControllerConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { PolicyVersion } from '../../kubernetes/policy-version.ts';
import { clusterReadRules, foresightRules, replicaRules, type RoleRule } from '../../domain/kubernetes/kubernetes-role.ts';
import { podPrice } from '../../domain/price.ts';
import type { PortableFile } from '../../providers/provider.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { haNames } from './names.ts';
import type { KubernetesSite } from './site.ts';

/** A rule of a Role; it may apply only to objects with certain names. */
export interface AccessRule extends RoleRule {
  readonly resourceNames?: readonly string[];
}

/** Owner of all other objects: Kubernetes removes them with it. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** All that determines the objects of a controller in a Kubernetes cluster. Plain data. */
export interface HighAvailabilityDesign {
  /** Tag `svc-owner` of all that the controller launches. */
  readonly key: string;
  /** The user's name of it. The controller's pods use it too, so that locations have the same names everywhere. */
  readonly context: string;
  readonly namespace: string;
  readonly image: string;
  readonly imagePullSecrets: readonly string[];
  /** `sqlite`: one controller with a volume; `postgresql`: two controllers without, of which one leads. */
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
  /** For every object, besides svc's own. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Of PodDisruptionBudget in this Kubernetes cluster. */
  readonly policyVersion: PolicyVersion;
  /** Rights for replicas in the namespace; `clusterReadRules`: to read the Kubernetes cluster's free resources. */
  readonly replicaRules: readonly AccessRule[];
  readonly clusterReadRules: readonly AccessRule[];
}

/** Data for Secrets only. */
export interface HighAvailabilitySecrets {
  readonly token: string;
  readonly files: readonly PortableFile[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Default size of a controller's volume, GB, as on a controller's machine. */
const defaultDiskGb = 200;

/** What a pod's default requests contribute to the cost. */
const controllerShare = { cpus: 0.25, memoryGb: 1 } as const;
const balancerShare = { cpus: 0.25, memoryGb: 0.5 } as const;

/** Facts about the Kubernetes cluster. */
export interface ClusterFacts {
  readonly key: string;
  readonly policyVersion: PolicyVersion;
  /** Of the endpoints' Service; undefined: reachable only from inside. */
  readonly outsideHost: string | undefined;
}

/** The design for a configuration and a Kubernetes cluster. Throws SVC_NO_CONTROLLER_IMAGE without an image. */
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

/** Address of the shared state database; undefined: a file on a volume. The environment has precedence. */
export function databaseOf({ serve }: Config): string | undefined {
  return envVar('SVC_DATABASE') ?? serve.controller.database;
}

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
