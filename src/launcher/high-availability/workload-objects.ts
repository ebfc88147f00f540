import { serviceLimit } from '../../domain/controller-placement.ts';
import { edgeProxyPort, edgeProxyPodLabels } from '../../domain/edge-proxy/edge-proxy.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { entryPath, type ProgramEntry } from '../../shared/program-files.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { haNames, inContainer } from './names.ts';
import { containerSecurity, labelsOf, metadataOf, podBasics, podSelector, type PodRole } from './object-parts.ts';
import { putFilesScript } from './settings-objects.ts';

const healthPort = 30_100;

const defaultControllerRequests = { cpu: '250m', memory: '1Gi' } as const;
const balancerRequests = { cpu: '250m', memory: '512Mi' } as const;
const checkerRequests = { cpu: '20m', memory: '128Mi' } as const;
/** Two: the loss of one node may end a health checker together with a balancer. */
const checkers = 2;

/** For open requests when a balancer's pod ends, s. */
const balancerGraceSeconds = 60;
/** An ending pod serves this much longer, s, until the Service sends it no connections. */
const forgetSeconds = 5;
const checkerGraceSeconds = 5;

/** The controller's volume (only with SQLite), the Deployments and the disruption budgets. */
export function workloadObjects(design: HighAvailabilityDesign, digest: string | undefined): readonly KubeDraft[] {
  const volume = design.database === 'sqlite' ? [volumeClaim(design)] : [];
  return [
    ...volume,
    controllerDeployment(design, digest),
    // First, so that health checkers run during the balancers' update.
    checkerDeployment(design),
    balancerDeployment(design),
    disruptionBudget(design, 'controller'),
    disruptionBudget(design, 'balancer'),
  ];
}

function volumeClaim(design: HighAvailabilityDesign): KubeDraft {
  const { diskGb, storageClass } = design;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: metadataOf(design, haNames.volume),
    spec: {
      accessModes: ['ReadWriteOnce'],
      ...(storageClass !== undefined && { storageClassName: storageClass }),
      resources: { requests: { storage: `${diskGb}G` } },
    },
  };
}

function controllerDeployment(design: HighAvailabilityDesign, digest: string | undefined): KubeDraft {
  const isSingle = design.database === 'sqlite';
  return deployment(design, 'controller', {
    replicas: isSingle ? 1 : 2,
    // Only one pod at a time can use the volume.
    strategy: isSingle ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    annotations: digest === undefined ? {} : { 'svc-settings': digest },
    pod: {
      serviceAccountName: haNames.controllerAccount,
      terminationGracePeriodSeconds: 30,
      initContainers: [settingsContainer(design)],
      containers: [controllerContainer(design)],
      volumes: [
        isSingle ? { name: 'home', persistentVolumeClaim: { claimName: haNames.volume } } : { name: 'home', emptyDir: {} },
        { name: 'tmp', emptyDir: {} },
        { name: 'files', secret: { secretName: haNames.files, optional: true } },
        { name: 'anchor', configMap: { name: haNames.anchor } },
        tokenVolume,
      ],
    },
  });
}

function settingsContainer(design: HighAvailabilityDesign): Readonly<Record<string, unknown>> {
  return {
    name: 'settings',
    image: design.image,
    command: ['/bin/sh', '-c', putFilesScript],
    securityContext: containerSecurity,
    resources: { requests: controllerRequests(design) },
    volumeMounts: [
      homeMount,
      temporaryMount,
      { name: 'files', mountPath: inContainer.files, readOnly: true },
      { name: 'anchor', mountPath: inContainer.anchor, readOnly: true },
    ],
  };
}

function controllerContainer(design: HighAvailabilityDesign): Readonly<Record<string, unknown>> {
  const { image, namespace, memoryGb } = design;
  const requests = controllerRequests(design);
  return {
    name: 'controller',
    image,
    args: [programIn('controller/main')],
    env: [
      { name: 'SVC_HOME', value: inContainer.home },
      { name: 'SVC_LEASE', value: `kubernetes:${namespace}/${haNames.lease}` },
      { name: 'SVC_HEALTH_PORT', value: String(healthPort) },
      ...serviceLimitEnv(design),
      { name: 'KUBECONFIG', value: `${inContainer.ownKubeconfig}:${inContainer.otherKubeconfig}` },
    ],
    envFrom: [{ secretRef: { name: haNames.environment, optional: true } }],
    securityContext: containerSecurity,
    resources: { requests, ...(memoryGb !== undefined && { limits: { memory: requests.memory } }) },
    ports: [{ name: 'health', containerPort: healthPort, protocol: 'TCP' }],
    readinessProbe: probe('/readyz', 'health', { periodSeconds: 2, failureThreshold: 5 }),
    // Slow, so that it never kills a controller on a busy machine. A hung controller loses its lease long before.
    livenessProbe: probe('/healthz', 'health', { initialDelaySeconds: 10, periodSeconds: 20, failureThreshold: 6 }),
    volumeMounts: [homeMount, temporaryMount, tokenMount],
  };
}

/** In a pod, Node.js sees the processors and the memory of the whole node. What was requested counts. */
function serviceLimitEnv({ cpus, memoryGb }: HighAvailabilityDesign): readonly { readonly name: string; readonly value: string }[] {
  if (cpus === undefined && memoryGb === undefined) return [];
  return [
    { name: 'SVC_SERVICE_LIMIT', value: String(serviceLimit(cpus ?? Number.POSITIVE_INFINITY, memoryGb ?? Number.POSITIVE_INFINITY)) },
  ];
}

function controllerRequests({ cpus, memoryGb }: HighAvailabilityDesign): { readonly cpu: string; readonly memory: string } {
  return {
    cpu: cpus === undefined ? defaultControllerRequests.cpu : `${Math.round(cpus * 1_000)}m`,
    memory: memoryGb === undefined ? defaultControllerRequests.memory : `${memoryGb}G`,
  };
}

function balancerDeployment(design: HighAvailabilityDesign): KubeDraft {
  const { image, balancers } = design;
  return deployment(design, 'balancer', {
    replicas: balancers,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    annotations: {},
    // The Service selects pods by this label, which a health checker sets, and ignores their readiness.
    labels: { [edgeProxyPodLabels.serving]: 'false' },
    pod: {
      serviceAccountName: haNames.balancerAccount,
      // A balancer makes no calls to Kubernetes: an intruder must find no credentials in its pod.
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: balancerGraceSeconds + forgetSeconds,
      containers: [
        {
          name: 'balancer',
          image,
          args: [programIn('controller/edge-proxy/main')],
          env: [
            { name: 'SVC_HOME', value: inContainer.home },
            { name: 'SVC_BALANCER_TOKEN_FILE', value: inContainer.token },
            { name: 'SVC_BALANCER_PORT', value: String(edgeProxyPort) },
            { name: 'SVC_BALANCER_LABELS_FILE', value: inContainer.podLabels },
          ],
          securityContext: containerSecurity,
          resources: { requests: balancerRequests },
          ports: [{ name: 'control', containerPort: edgeProxyPort, protocol: 'TCP' }],
          readinessProbe: probe('/readyz', 'control', { periodSeconds: 1, failureThreshold: 3 }),
          livenessProbe: probe('/healthz', 'control', { initialDelaySeconds: 10, periodSeconds: 10, failureThreshold: 6 }),
          lifecycle: { preStop: { exec: { command: ['/bin/sleep', String(forgetSeconds)] } } },
          volumeMounts: [homeMount, temporaryMount, tokenMount, { name: 'pod', mountPath: inContainer.podFolder, readOnly: true }],
        },
      ],
      volumes: [{ name: 'home', emptyDir: {} }, { name: 'tmp', emptyDir: {} }, tokenVolume, podVolume],
    },
  });
}

/** A health checker listens on no port, so it has no probes. It needs no files. */
function checkerDeployment(design: HighAvailabilityDesign): KubeDraft {
  return deployment(design, 'checker', {
    replicas: checkers,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    annotations: {},
    pod: {
      serviceAccountName: haNames.checker,
      terminationGracePeriodSeconds: checkerGraceSeconds,
      containers: [
        {
          name: 'checker',
          image: design.image,
          args: [programIn('controller/edge-proxy/health-checker')],
          env: [
            { name: 'SVC_HOME', value: inContainer.home },
            { name: 'SVC_BALANCER_PORT', value: String(edgeProxyPort) },
          ],
          securityContext: containerSecurity,
          resources: { requests: checkerRequests },
          volumeMounts: [temporaryMount],
        },
      ],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    },
  });
}

interface DeploymentParts {
  readonly replicas: number;
  readonly strategy: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Labels of the pods, besides those that all pods have. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly pod: Readonly<Record<string, unknown>>;
}

function deployment(
  design: HighAvailabilityDesign,
  role: PodRole,
  { replicas, strategy, annotations, labels, pod }: DeploymentParts,
): KubeDraft {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(design, haNames[role]),
    spec: {
      replicas,
      revisionHistoryLimit: 2,
      selector: { matchLabels: podSelector(role) },
      strategy,
      template: {
        metadata: {
          labels: { ...labelsOf(design), ...podSelector(role), ...labels },
          ...(Object.keys(annotations).length > 0 && { annotations }),
        },
        spec: { ...podBasics(design, role), ...pod },
      },
    },
  };
}

/** One pod at a time may be evicted, even the only one: an administrator must be able to drain a node. */
function disruptionBudget(design: HighAvailabilityDesign, role: PodRole): KubeDraft {
  return {
    apiVersion: design.policyVersion,
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(design, haNames[role]),
    spec: { maxUnavailable: 1, selector: { matchLabels: podSelector(role) } },
  };
}

function programIn(entry: ProgramEntry): string {
  return `${inContainer.program}/${entryPath(entry, true)}`;
}

const homeMount = { name: 'home', mountPath: inContainer.volume } as const;
const temporaryMount = { name: 'tmp', mountPath: '/tmp' } as const;
const podVolume = {
  name: 'pod',
  downwardAPI: { items: [{ path: 'labels', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.labels' } }] },
} as const;
const tokenVolume = { name: 'token', secret: { secretName: haNames.token, defaultMode: 0o440 } } as const;
const tokenMount = { name: 'token', mountPath: inContainer.tokenFolder, readOnly: true } as const;

interface ProbePace {
  readonly initialDelaySeconds?: number;
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

function probe(path: string, port: string, pace: ProbePace): Readonly<Record<string, unknown>> {
  return { httpGet: { path, port, scheme: 'HTTP' }, timeoutSeconds: 5, ...pace };
}
