import type { KubernetesContextConfig } from '../../domain/config.ts';
import { mergePod } from '../../domain/kubernetes/merge-pod.ts';
import { mainContainer, ownVolumes, workFolder } from '../../domain/kubernetes/pod-config.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { PolicyVersion } from '../../kubernetes/policy-version.ts';
import { isObject } from '../../shared/json.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import {
  anchorName,
  isAnnotationName,
  isLabel,
  isOwnName,
  ownAnnotations,
  ownerOf,
  ownLabels,
  readinessCondition,
  sharedTags,
  tagLabel,
} from './names.ts';
import { inEach, nodePreferences, nodeTerms, type NodeDemands, type NodeTerm } from './nodes/node-demands.ts';
import { podTolerations, readSize } from './pod-settings.ts';

/** Inputs of a pod's manifest. */
export interface PodPlan {
  readonly config: KubernetesContextConfig;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly demands: NodeDemands;
  readonly namespace: string;
  readonly base: string;
  /** Includes the pod's rank in a group. */
  readonly name: string;
  readonly rank: number;
  readonly image: string;
  readonly command: readonly string[];
  /** Whether svc reports the readiness of its replica. Without the reports, a pod with the gate is never ready. */
  readonly hasReadinessGate: boolean;
  readonly anchor: { readonly name: string; readonly uid: string };
}

/** The object that owns all others of a service or controller. It holds no data. */
export function anchorManifest(plan: Pick<PodPlan, 'config' | 'spec' | 'namespace' | 'base'>): KubeDraft {
  const { config, spec, namespace, base } = plan;
  const owner = ownerOf(spec.tags);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: owner === undefined ? base : anchorName(owner),
      namespace,
      labels: { ...validLabels(config.labels), ...tagLabels(sharedTags(spec.tags)), [ownLabels.owned]: tagLabel(owner ?? base) },
      annotations: config.annotations,
    },
  };
}

/** Evictions of a service's pods leave this many of them ready. */
export function budgetManifest(plan: Pick<PodPlan, 'config' | 'namespace' | 'anchor'> & BudgetPlan): KubeDraft {
  const { version, owner, minAvailable, config, namespace, anchor } = plan;
  return {
    apiVersion: version,
    kind: 'PodDisruptionBudget',
    metadata: {
      name: anchorName(owner),
      namespace,
      labels: { ...validLabels(config.labels), [ownLabels.owned]: tagLabel(owner) },
      annotations: config.annotations,
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: anchor.name, uid: anchor.uid }],
    },
    // Kubernetes accepts no percentage, and no `maxUnavailable`, for pods without a controller such as a Deployment.
    spec: { minAvailable, selector: { matchLabels: { 'svc-service-key': tagLabel(owner) } } },
  };
}

interface BudgetPlan {
  readonly version: PolicyVersion;
  /** The service's key. */
  readonly owner: string;
  readonly minAvailable: number;
}

/** One pod of a machine, with the partial pods of configuration and task merged in. */
export function podManifest(plan: PodPlan): KubeDraft {
  const { config, spec, namespace, name, anchor, base, rank } = plan;
  const { metadata: patchedMetadata, ...patched } = withPodConfig(plan);
  const metadata = isObject(patchedMetadata) ? patchedMetadata : {};
  const { labels, annotations } = metadata;
  return {
    ...patched,
    apiVersion: 'v1',
    kind: 'Pod',
    // svc finds the pod by these, so they override all merged parts.
    metadata: {
      ...metadata,
      name,
      namespace,
      labels: {
        ...(isObject(labels) ? labels : {}),
        ...tagLabels(spec.tags),
        [ownLabels.machine]: base,
        [ownLabels.rank]: String(rank),
        [ownLabels.owned]: tagLabel(ownerOf(spec.tags) ?? base),
      },
      annotations: {
        ...(isObject(annotations) ? annotations : {}),
        [ownAnnotations.tags]: JSON.stringify(spec.tags),
        [ownAnnotations.nodes]: String(spec.nodes),
        [ownAnnotations.patience]: String(provisionTimeoutSeconds(config, spec)),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: anchor.name, uid: anchor.uid }],
    },
  };
}

/** Maximum wait for room, s. */
export function provisionTimeoutSeconds(config: KubernetesContextConfig, spec: Pick<MachineSpec, 'providerConfig'>): number {
  const said = spec.providerConfig.kubernetes?.provisionTimeoutSeconds ?? config.provisionTimeoutSeconds;
  return said ?? (config.autoscaler === undefined ? 10 : 600);
}

function withPodConfig(plan: PodPlan): Readonly<Record<string, unknown>> {
  const { config, spec, demands } = plan;
  const patches = [config.podConfig, spec.providerConfig.kubernetes?.podConfig ?? {}];
  const pod = patches.reduce((merged, patch) => mergePod(merged, patch), plainPod(plan));
  const { spec: podSpec } = pod;
  if (!isObject(podSpec)) return pod;
  const constraints = apartInZones(spec);
  // Not merged: Kubernetes rejects two constraints of the same topology, so the configured ones replace svc's.
  const placed = constraints.length === 0 ? podSpec : { topologySpreadConstraints: constraints, ...podSpec };
  const whole = withOwnGroup(onNodes(placed, nodeTerms(demands)));
  return { ...pod, spec: plan.hasReadinessGate ? withReadinessGate(whole) : whole };
}

/** The patches alone would admit nodes with other GPUs: they may only choose among the offered nodes. */
function onNodes(podSpec: PodPart, terms: readonly NodeTerm[]): PodPart {
  if (terms.length === 0) return podSpec;
  const affinity = partOf(podSpec, 'affinity');
  const nodeAffinity = partOf(affinity, 'nodeAffinity');
  const field = 'requiredDuringSchedulingIgnoredDuringExecution';
  const { nodeSelectorTerms: given } = partOf(nodeAffinity, field);
  const required = { nodeSelectorTerms: inEach(terms, Array.isArray(given) ? given : []) };
  return { ...podSpec, affinity: { ...affinity, nodeAffinity: { ...nodeAffinity, [field]: required } } };
}

/** Kubernetes' Ready then follows svc's probes: budgets, Services of users and `kubectl` see it. */
function withReadinessGate(podSpec: PodPart): PodPart {
  const { readinessGates: given } = podSpec;
  return { ...podSpec, readinessGates: [...(Array.isArray(given) ? given : []), { conditionType: readinessCondition }] };
}

/** Volumes belong to root; a container that runs as another user needs a group to write to them. */
function withOwnGroup(podSpec: PodPart): PodPart {
  const securityContext = partOf(podSpec, 'securityContext');
  const { runAsUser, runAsGroup, fsGroup } = securityContext;
  if (runAsUser === undefined || runAsUser === null || fsGroup !== undefined) return podSpec;
  return { ...podSpec, securityContext: { ...securityContext, fsGroup: runAsGroup ?? runAsUser } };
}

type PodPart = Readonly<Record<string, unknown>>;

function partOf(part: PodPart, field: string): PodPart {
  const inner = part[field];
  return isObject(inner) ? inner : {};
}

function plainPod(plan: PodPlan): Readonly<Record<string, unknown>> {
  const { config, offer, spec, demands } = plan;
  const gpus = offer.accelerator?.count ?? 0;
  const preferences = nodePreferences(demands);
  const apart = spread(spec.tags, plan.base);
  const { labels, annotations } = labelsOf(spec.labels);
  const volumes = volumesOf(spec, gpus > 0);
  // Leaves out the patch's tolerations, because the merge adds them.
  const tolerations = podTolerations({ ...config, podConfig: {} }, gpus, offer.spot);
  return {
    metadata: {
      labels: { ...validLabels(config.labels), ...labels },
      annotations: { ...(offer.spot ? {} : keptFromAutoscalers), ...config.annotations, ...annotations },
    },
    spec: {
      restartPolicy: 'Never',
      // A program gets no credentials for the Kubernetes API, unless the configuration names a service account.
      ...(config.serviceAccount === undefined ? { automountServiceAccountToken: false } : { serviceAccountName: config.serviceAccount }),
      enableServiceLinks: false,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      ...(config.imagePullSecrets.length > 0 && { imagePullSecrets: config.imagePullSecrets.map((name) => ({ name })) }),
      ...(Object.keys(config.nodeSelector).length > 0 && { nodeSelector: config.nodeSelector }),
      tolerations: [
        // No end time: health probes decide about a replica on a silent node, not the Kubernetes cluster.
        ...['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
          key,
          operator: 'Exists',
          effect: 'NoExecute',
        })),
        ...tolerations,
      ],
      affinity: {
        ...(preferences !== undefined && { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferences } }),
        podAntiAffinity: apart,
      },
      containers: [
        {
          name: mainContainer,
          image: plan.image,
          command: plan.command,
          resources: resourcesOf(plan),
          ...(spec.ports.length > 0 && { ports: spec.ports.map((containerPort) => ({ containerPort, protocol: 'TCP' })) }),
          securityContext: { allowPrivilegeEscalation: false },
          volumeMounts: volumes.map(({ name, mountPath }) => ({ name, mountPath })),
        },
      ],
      volumes: volumes.map(({ name, source }) => ({ name, ...source })),
    },
  };
}

/**
 * Autoscalers then remove no node with the pod to save costs. A spot node ends anyway, and GKE Autopilot may refuse
 * spot pods with such an annotation.
 */
const keptFromAutoscalers = {
  'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
  'karpenter.sh/do-not-disrupt': 'true',
} as const;

/**
 * Preferences for a service's pods: the loss of a zone should affect few replicas. Unlike an anti-affinity, the scheduler
 * counts no terminating pods here. It ignores both constraints on nodes without a zone; the anti-affinity remains.
 * The pods of a group communicate, so they are not sent to different zones.
 */
function apartInZones({ tags, nodes }: MachineSpec): readonly PodPart[] {
  const service = tags['svc-service-key'];
  if (service === undefined || nodes > 1) return [];
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: { 'svc-service-key': tagLabel(service) } },
  }));
}

/** The loss of a node should affect as few pods as possible. */
function spread(tags: MachineSpec['tags'], base: string): Readonly<Record<string, unknown>> {
  const service = tags['svc-service-key'];
  const matchLabels = service === undefined ? { [ownLabels.machine]: base } : { 'svc-service-key': tagLabel(service) };
  return {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } } },
    ],
  };
}

function resourcesOf({ offer, demands }: PodPlan): Readonly<Record<string, unknown>> {
  const size = readSize(offer.instanceType) ?? { cpus: offer.cpus, memoryGb: offer.memoryGb, isMemorySoft: true };
  const memory = `${Math.round(size.memoryGb * 1_024)}Mi`;
  const gpu = demands.gpu === undefined ? {} : { [demands.gpu.resource]: String(offer.accelerator?.count ?? 0) };
  return {
    requests: { cpu: `${Math.round(size.cpus * 1_000)}m`, memory, ...gpu },
    // A container may use idle CPUs beyond its request, but not more memory.
    ...((!size.isMemorySoft || demands.gpu !== undefined) && { limits: { ...(!size.isMemorySoft && { memory }), ...gpu } }),
  };
}

interface PodVolume {
  readonly name: string;
  readonly mountPath: string;
  readonly source: Readonly<Record<string, unknown>>;
}

function volumesOf(spec: MachineSpec, hasGpus: boolean): readonly PodVolume[] {
  return [
    { name: ownVolumes.work, mountPath: workFolder, source: { emptyDir: {} } },
    // Processes that share GPUs communicate through it, and the usual 64 MB are too small.
    ...(hasGpus ? [{ name: ownVolumes.sharedMemory, mountPath: '/dev/shm', source: { emptyDir: { medium: 'Memory' } } }] : []),
    ...Object.entries(spec.volumes).map(([mountPath, claimName], index) => ({
      name: `volume-${index}`,
      mountPath,
      source: { persistentVolumeClaim: { claimName } },
    })),
  ];
}

function tagLabels(tags: MachineSpec['tags']): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(tags).map(([name, value]) => [name, tagLabel(value)]));
}

/** Invalid labels become annotations under their own names, where these are valid. Names like svc's go into a list. */
function labelsOf(given: Readonly<Record<string, string>>): {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
} {
  const labels: Record<string, string> = {};
  const annotations: Record<string, string> = {};
  const rest: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (isOwnName(name)) rest[name] = value;
    else if (isLabel(name, value)) labels[name] = value;
    else if (isAnnotationName(name)) annotations[name] = value;
    else rest[name] = value;
  }
  if (Object.keys(rest).length > 0) annotations['svc-labels'] = JSON.stringify(rest);
  return { labels, annotations };
}

function validLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([name, value]) => isLabel(name, value) && !isOwnName(name)));
}
