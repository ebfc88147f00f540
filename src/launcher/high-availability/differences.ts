import type { Config, ControllerConfig } from '../../domain/config.ts';
import { kubernetesContextConfig } from '../../domain/kubernetes/kubernetes-context.ts';
import type { KubeApi, KubeDraft } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import { parseQuantity } from '../../kubernetes/quantity.ts';
import { SvcError } from '../../shared/errors.ts';
import { isObject } from '../../shared/json.ts';
import { beginAnew, forNextController, kindDifference, type ControllerDifference } from '../controller-differences.ts';
import type { ControllerRecord } from '../controller-record.ts';
import { designOf, type HighAvailabilityDesign } from './design.ts';
import { haNames, storageClassSetting } from './names.ts';
import type { KubernetesSite } from './site.ts';
import { workloadObjects } from './workload-objects.ts';

/** An existing controller's configurable values; undefined where the object does not exist. */
export interface MadeInCluster {
  readonly controllerImage: string | undefined;
  readonly balancerImage: string | undefined;
  readonly balancers: number | undefined;
  /** As Kubernetes writes quantities. */
  readonly cpu: string | undefined;
  readonly memory: string | undefined;
  /** Read from the pod: an old volume may still exist. */
  readonly state: 'on a volume' | 'in PostgreSQL' | undefined;
  readonly disk: string | undefined;
  readonly storageClass: string | undefined;
  readonly endpointService: string | undefined;
}

interface Objects {
  readonly controller: unknown;
  readonly balancer: unknown;
  readonly volume: unknown;
  readonly endpoints: unknown;
}

/** A difference that stays while the controller exists. */
interface FixedDifference extends ControllerDifference {
  readonly reason: string;
}

const upgrade = 'To change that: svc controller upgrade';

/** Reads the values from the Kubernetes cluster. */
export async function madeInCluster({ namespace }: KubernetesSite, api: KubeApi, signal: AbortSignal): Promise<MadeInCluster> {
  const [controller, balancer, volume, endpoints] = await Promise.all([
    api.get(pathOfOne('Deployment', namespace, haNames.controller), { signal }),
    api.get(pathOfOne('Deployment', namespace, haNames.balancer), { signal }),
    api.get(pathOfOne('PersistentVolumeClaim', namespace, haNames.volume), { signal }),
    api.get(pathOfOne('Service', namespace, haNames.endpoints), { signal }),
  ]);
  return readMade({ controller, balancer, volume, endpoints });
}

/** Where a controller in a Kubernetes cluster differs from the configuration. Being stopped is no difference. */
export function differencesInCluster(config: Config, record: ControllerRecord, made: MadeInCluster): readonly ControllerDifference[] {
  const site = record.cluster;
  const kind = kindDifference({ kind: 'remote', record }, config);
  // The rest applies to another controller.
  if (site === undefined || kind.length > 0) return kind;
  const { image } = config.serve.controller;
  const known = { key: record.key, policyVersion: 'policy/v1', outsideHost: undefined } as const;
  const design = designOf(withImage(config, image ?? made.controllerImage ?? '-'), site, known);
  const desired = desiredBy(design);
  return [
    ...siteDifferences(config, site),
    ...imageDifferences(image, made),
    ...countDifferences(config.serve.controller, made),
    ...sizeDifferences(desired, made),
    ...growthDifferences(desired, made),
    ...fixedDifferences(desired, made).map(({ what, remedy }) => ({ what, remedy })),
  ];
}

/**
 * Throws SVC_CONTROLLER_IMMUTABLE for a design that would move the controller's state, or change its volume in an
 * impossible way. Otherwise Kubernetes would refuse the volume after half of the changes, and a moved controller would
 * start with an empty state, without a warning.
 */
export function refuseFixed(design: HighAvailabilityDesign, made: MadeInCluster): void {
  const found = fixedDifferences(desiredBy(design), made);
  if (found.length === 0) return;
  throw new SvcError('SVC_CONTROLLER_IMMUTABLE', found.map(({ what, reason }) => `${what} ${reason}`).join(' '), {
    hint: `Write it in config.yaml as it was (SVC_DATABASE goes before the file, where it is set); or begin with a new controller: ${beginAnew}`,
  });
}

function withImage({ serve, ...rest }: Config, image: string): Config {
  return { ...rest, serve: { ...serve, controller: { ...serve.controller, image } } };
}

function siteDifferences({ serve, kubernetes }: Config, { context, namespace }: KubernetesSite): readonly ControllerDifference[] {
  const choices = serve.controller.resources?.choices ?? [];
  const clouds = [...new Set(choices.flatMap(({ cloud }) => cloud ?? []))];
  if (clouds.length > 0 && choices.every(({ cloud }) => cloud !== undefined && cloud !== 'kubernetes')) {
    const what = `serve.controller.resources asks for ${clouds.join(', ')}, and the controller lives in the cluster ${context}.`;
    return [{ what, remedy: 'Write infra: k8s there, or remove high_availability from config.yaml and begin with a new controller.' }];
  }
  const requestedContext = choices.find(({ cloud, region }) => cloud === 'kubernetes' && region !== undefined)?.region ?? context;
  if (requestedContext !== context)
    return [
      {
        what: `serve.controller.resources names the cluster ${requestedContext}, and the controller lives in ${context}.`,
        remedy: forNextController,
      },
    ];
  const requestedNamespace = kubernetesContextConfig(kubernetes, context).namespace ?? namespace;
  if (requestedNamespace === namespace) return [];
  const what = `config.yaml names the namespace ${requestedNamespace}, and the controller lives in ${namespace} of ${context}.`;
  return [{ what, remedy: forNextController }];
}

function imageDifferences(
  requestedImage: string | undefined,
  { controllerImage, balancerImage }: MadeInCluster,
): readonly ControllerDifference[] {
  const images = [...new Set([controllerImage, balancerImage].filter((image) => image !== undefined))];
  if (images.length === 0) return [];
  if (requestedImage === undefined) {
    const what = `serve.controller.image names no image, and its pods run ${images.join(', ')}.`;
    return [{ what, remedy: 'Name it in config.yaml: svc controller upgrade and start refuse without.' }];
  }
  if (images.every((image) => image === requestedImage)) return [];
  return [{ what: `serve.controller.image is ${requestedImage}, and its pods run ${images.join(', ')}.`, remedy: upgrade }];
}

function countDifferences({ balancers, endpointService }: ControllerConfig, made: MadeInCluster): readonly ControllerDifference[] {
  const found: ControllerDifference[] = [];
  if (made.balancers !== undefined && made.balancers !== balancers)
    found.push({ what: `serve.controller.balancers is ${balancers}, and the cluster is to run ${made.balancers}.`, remedy: upgrade });
  if (made.endpointService !== undefined && made.endpointService !== endpointService)
    found.push({
      what: `serve.controller.endpoint_service is ${endpointService}, and the Service is of type ${made.endpointService}.`,
      remedy: upgrade,
    });
  return found;
}

function sizeDifferences(desired: MadeInCluster, made: MadeInCluster): readonly ControllerDifference[] {
  if (made.controllerImage === undefined) return [];
  const fields = [
    ['cpus', desired.cpu, made.cpu],
    ['memory', desired.memory, made.memory],
  ] as const;
  return fields.flatMap(([field, expected, is]) =>
    isSameAmount(expected, is)
      ? []
      : [
          {
            what: `serve.controller.resources makes ${field} ${expected ?? 'none'}, and the controller's pod asks for ${is ?? 'none'}.`,
            remedy: upgrade,
          },
        ],
  );
}

function growthDifferences(desired: MadeInCluster, made: MadeInCluster): readonly ControllerDifference[] {
  const by = growth(desired, made);
  if (by === undefined || by <= 0) return [];
  return [{ what: describeDisk(desired, made), remedy: `${upgrade}; its storage class must let volumes grow.` }];
}

function fixedDifferences(desired: MadeInCluster, made: MadeInCluster): readonly FixedDifference[] {
  const found: FixedDifference[] = [];
  if (made.state !== undefined && desired.state !== made.state)
    found.push({
      what: `The configuration keeps the state ${desired.state} (serve.controller.database), and the controller has it ${made.state}.`,
      reason: 'What the one knows is not given to the other: its services would stay behind.',
      remedy: forNextController,
    });
  if ((growth(desired, made) ?? 0) < 0)
    found.push({
      what: describeDisk(desired, made),
      reason: 'A volume cannot become smaller.',
      remedy:
        'A volume cannot become smaller, and svc controller upgrade refuses it: write the old disk_size, or begin with a new controller.',
    });
  // Kubernetes writes its default where no storage class was set.
  if (made.disk !== undefined && desired.storageClass !== undefined && desired.storageClass !== made.storageClass)
    found.push({
      what: `${storageClassSetting} is ${desired.storageClass}, and the controller's volume is of ${made.storageClass ?? 'no class'}.`,
      reason: 'A volume keeps its class.',
      remedy: forNextController,
    });
  return found;
}

function growth(desired: MadeInCluster, made: MadeInCluster): number | undefined {
  const [to, from] = [parseQuantity(desired.disk), parseQuantity(made.disk)];
  return to === undefined || from === undefined ? undefined : to - from;
}

function describeDisk(desired: MadeInCluster, made: MadeInCluster): string {
  return `serve.controller.resources makes the disk_size ${desired.disk}, and the controller's volume has ${made.disk}.`;
}

/** The API server normalizes quantities: 1000m becomes 1. */
function isSameAmount(one: string | undefined, other: string | undefined): boolean {
  return one === other || parseQuantity(one) === parseQuantity(other);
}

function byPurpose(drafts: readonly KubeDraft[]): Objects {
  const find = (kind: string, name: string): KubeDraft | undefined =>
    drafts.find((draft) => draft.kind === kind && draft.metadata.name === name);
  return {
    controller: find('Deployment', haNames.controller),
    balancer: find('Deployment', haNames.balancer),
    volume: find('PersistentVolumeClaim', haNames.volume),
    endpoints: undefined,
  };
}

function desiredBy(design: HighAvailabilityDesign): MadeInCluster {
  return readMade(byPurpose(workloadObjects(design, undefined)));
}

/** Alike for existing objects and objects to apply. */
function readMade({ controller, balancer, volume, endpoints }: Objects): MadeInCluster {
  const container = (deployment: unknown): unknown => at(deployment, 'spec', 'template', 'spec', 'containers', '0');
  const replicas = at(balancer, 'spec', 'replicas');
  return {
    controllerImage: text(at(container(controller), 'image')),
    balancerImage: text(at(container(balancer), 'image')),
    balancers: typeof replicas === 'number' ? replicas : undefined,
    cpu: text(at(container(controller), 'resources', 'requests', 'cpu')),
    memory: text(at(container(controller), 'resources', 'requests', 'memory')),
    state: stateOf(controller),
    disk: text(at(volume, 'spec', 'resources', 'requests', 'storage')),
    storageClass: text(at(volume, 'spec', 'storageClassName')),
    endpointService: text(at(endpoints, 'spec', 'type')),
  };
}

function stateOf(deployment: unknown): MadeInCluster['state'] {
  const volumes = at(deployment, 'spec', 'template', 'spec', 'volumes');
  if (!Array.isArray(volumes)) return undefined;
  return volumes.some((volume) => at(volume, 'persistentVolumeClaim', 'claimName') === haNames.volume) ? 'on a volume' : 'in PostgreSQL';
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) {
    if (Array.isArray(found)) found = found[Number(key)];
    else found = isObject(found) ? found[key] : undefined;
  }
  return found;
}
