import { balancerHostPort } from '../../domain/balancer-host.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import { entryPath, type ProgramEntry } from '../../shared/program-files.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { haNames, inContainer } from './names.ts';
import { containerSecurity, labelsOf, metadataOf, podBasics, podSelector, type PodRole } from './object-parts.ts';
import { putFilesScript } from './settings-objects.ts';

/** Where the controller answers probes. */
const healthPort = 30_100;

/** What a controller begins to run with when nothing was asked for. */
const leastController = { cpu: '250m', memory: '1Gi' } as const;
const balancerRequests = { cpu: '250m', memory: '512Mi' } as const;

/** Requests under way may take so long to end when a balancer's pod goes, s; besides, the Service needs some to forget it. */
const balancerGraceSeconds = 60;
const forgetSeconds = 5;

/** The pods, and what lets a cluster be looked after without taking them all away at once. */
export function workloadObjects(design: HighAvailabilityDesign, digest: string | undefined): readonly KubeDraft[] {
  const volume = design.database === 'sqlite' ? [volumeClaim(design)] : [];
  return [
    ...volume,
    controllerDeployment(design, digest),
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
  const isAlone = design.database === 'sqlite';
  return deployment(design, 'controller', {
    replicas: isAlone ? 1 : 2,
    // The volume is one pod's at a time.
    strategy: isAlone ? { type: 'Recreate' } : { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    annotations: digest === undefined ? {} : { 'svc-settings': digest },
    pod: {
      serviceAccountName: haNames.controllerAccount,
      terminationGracePeriodSeconds: 30,
      initContainers: [settingsContainer(design)],
      containers: [controllerContainer(design)],
      volumes: [
        isAlone ? { name: 'home', persistentVolumeClaim: { claimName: haNames.volume } } : { name: 'home', emptyDir: {} },
        { name: 'tmp', emptyDir: {} },
        { name: 'files', secret: { secretName: haNames.files, optional: true } },
        { name: 'anchor', configMap: { name: haNames.anchor } },
        tokenVolume,
      ],
    },
  });
}

/** Puts what the controller is given into its home, before it starts. */
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
      { name: 'KUBECONFIG', value: `${inContainer.ownKubeconfig}:${inContainer.otherKubeconfig}` },
    ],
    envFrom: [{ secretRef: { name: haNames.environment, optional: true } }],
    securityContext: containerSecurity,
    resources: { requests, ...(memoryGb !== undefined && { limits: { memory: requests.memory } }) },
    ports: [{ name: 'health', containerPort: healthPort, protocol: 'TCP' }],
    readinessProbe: probe('/readyz', 'health', { periodSeconds: 2, failureThreshold: 5 }),
    // One that hangs has lost the lease long before: this only tidies up, and must not hit one whose machine was busy.
    livenessProbe: probe('/healthz', 'health', { initialDelaySeconds: 10, periodSeconds: 20, failureThreshold: 6 }),
    volumeMounts: [homeMount, temporaryMount, tokenMount],
  };
}

function controllerRequests({ cpus, memoryGb }: HighAvailabilityDesign): { readonly cpu: string; readonly memory: string } {
  return {
    cpu: cpus === undefined ? leastController.cpu : `${Math.round(cpus * 1_000)}m`,
    memory: memoryGb === undefined ? leastController.memory : `${memoryGb}G`,
  };
}

function balancerDeployment(design: HighAvailabilityDesign): KubeDraft {
  const { image, balancers } = design;
  return deployment(design, 'balancer', {
    replicas: balancers,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    annotations: {},
    pod: {
      serviceAccountName: haNames.balancerAccount,
      terminationGracePeriodSeconds: balancerGraceSeconds + forgetSeconds,
      containers: [
        {
          name: 'balancer',
          image,
          args: [programIn('controller/balancer-host/main')],
          env: [
            { name: 'SVC_HOME', value: inContainer.home },
            { name: 'SVC_BALANCER_TOKEN_FILE', value: inContainer.token },
            { name: 'SVC_BALANCER_PORT', value: String(balancerHostPort) },
            { name: 'SVC_BALANCER_PEERS', value: 'kubernetes' },
          ],
          securityContext: containerSecurity,
          resources: { requests: balancerRequests },
          ports: [{ name: 'control', containerPort: balancerHostPort, protocol: 'TCP' }],
          readinessProbe: probe('/readyz', 'control', { periodSeconds: 1, failureThreshold: 3 }),
          livenessProbe: probe('/healthz', 'control', { initialDelaySeconds: 10, periodSeconds: 10, failureThreshold: 6 }),
          lifecycle: { preStop: { exec: { command: ['/bin/sleep', String(forgetSeconds)] } } },
          volumeMounts: [homeMount, temporaryMount, tokenMount],
        },
      ],
      volumes: [{ name: 'home', emptyDir: {} }, { name: 'tmp', emptyDir: {} }, tokenVolume],
    },
  });
}

/** What tells one deployment from the other. */
interface DeploymentParts {
  readonly replicas: number;
  readonly strategy: Readonly<Record<string, unknown>>;
  /** Of its pods. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly pod: Readonly<Record<string, unknown>>;
}

function deployment(design: HighAvailabilityDesign, role: PodRole, { replicas, strategy, annotations, pod }: DeploymentParts): KubeDraft {
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
          labels: { ...labelsOf(design), ...podSelector(role) },
          ...(Object.keys(annotations).length > 0 && { annotations }),
        },
        spec: { ...podBasics(design, role), ...pod },
      },
    },
  };
}

/** One at a time may be taken away on purpose, also the only one: a node must be able to be emptied. */
function disruptionBudget(design: HighAvailabilityDesign, role: PodRole): KubeDraft {
  return {
    apiVersion: design.policyVersion,
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(design, haNames[role]),
    spec: { maxUnavailable: 1, selector: { matchLabels: podSelector(role) } },
  };
}

/** An entry of the program in the image, where it is a bundle. */
function programIn(entry: ProgramEntry): string {
  return `${inContainer.program}/${entryPath(entry, true)}`;
}

const homeMount = { name: 'home', mountPath: inContainer.volume } as const;
const temporaryMount = { name: 'tmp', mountPath: '/tmp' } as const;
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
