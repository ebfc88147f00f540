import type { Config } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes-context.ts';
import { clusterReadRules, foresightRules, replicaRules } from '../../domain/kubernetes-role.ts';
import { podPrice } from '../../domain/pod-price.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { haNames } from './names.ts';
import type { ClusterSite } from './site.ts';

/** GB; what a controller's volume has when nothing is said, as a controller's machine. */
const defaultDiskGb = 200;

/** What a controller's and a balancer's pod are counted as when nothing was asked for: what they request. */
const controllerShare = { cpus: 0.25, memoryGb: 1 } as const;
const balancerShare = { cpus: 0.25, memoryGb: 0.5 } as const;

/** What is known of the cluster. */
export interface KnownOfCluster {
  readonly key: string;
  readonly policyVersion: HighAvailabilityDesign['policyVersion'];
  /** Name or address of the endpoints' Service from outside; undefined where it is reached inside only. */
  readonly outsideHost: string | undefined;
}

/** What the configuration makes of a cluster. Throws SVC_NO_CONTROLLER_IMAGE when it names none. */
export function designOf(config: Config, { context, namespace }: ClusterSite, known: KnownOfCluster): HighAvailabilityDesign {
  const { image, balancers, endpointService, resources } = config.serve.controller;
  const database = databaseOf(config);
  if (image === undefined) throw noImage();
  const cluster = kubernetesContextConfig(config.kubernetes, context);
  const asked = resources?.choices.find(({ cloud }) => cloud === 'kubernetes' || cloud === undefined) ?? resources?.choices[0];
  const cpus = asked?.cpus?.value;
  const memoryGb = asked?.memory?.value;
  const controllers = database === undefined ? 1 : 2;
  const price = (share: { readonly cpus: number; readonly memoryGb: number }): number =>
    podPrice(cluster.price, { ...share, accelerator: undefined });
  return {
    key: known.key,
    context,
    namespace,
    image,
    imagePullSecrets: cluster.imagePullSecrets,
    database: database === undefined ? 'sqlite' : 'postgresql',
    cpus,
    memoryGb,
    diskGb: asked?.diskSizeGb ?? defaultDiskGb,
    storageClass: cluster.storageClass,
    balancers,
    endpointService,
    publicHost: known.outsideHost ?? insideHost(namespace),
    hourlyUsd:
      controllers * price({ cpus: cpus ?? controllerShare.cpus, memoryGb: memoryGb ?? controllerShare.memoryGb }) +
      balancers * price(balancerShare),
    labels: cluster.labels,
    annotations: cluster.annotations,
    policyVersion: known.policyVersion,
    replicaRules: [...replicaRules, ...foresightRules],
    clusterReadRules,
  };
}

/** The database to share a state in, as controllers see it; undefined: a file on a volume. What the environment says goes before the file, as everywhere. */
export function databaseOf({ serve }: Config): string | undefined {
  return envVar('SVC_DATABASE') ?? serve.controller.database;
}

/** Where endpoints are for those in the cluster. */
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
