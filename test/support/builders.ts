import type { Resources, ServiceSpec, Task } from '../../src/domain/task.ts';
import type { PlaceableOffer } from '../../src/domain/placement.ts';
import { freshControllerRecord, type ControllerRecord } from '../../src/launcher/controller-record.ts';
import type { MachineSpec, Offer } from '../../src/providers/provider.ts';
import type { ReplicaRecord, ServiceRecord, VersionRecord } from '../../src/store/records.ts';

/** Resources that ask for nothing in particular. */
export function someResources(change: Partial<Resources> = {}): Resources {
  return {
    cloud: undefined,
    region: undefined,
    zone: undefined,
    cpus: undefined,
    memory: undefined,
    accelerator: undefined,
    acceleratorMemory: undefined,
    instanceType: undefined,
    useSpot: false,
    diskSizeGb: 256,
    diskTier: undefined,
    networkTier: undefined,
    ports: [8080],
    imageId: undefined,
    labels: {},
    maxHourlyCost: undefined,
    otherFields: [],
    ...change,
  };
}

/** A machine that could be had. */
export function aPlaceableOffer(change: Partial<PlaceableOffer> = {}): PlaceableOffer {
  return {
    provider: 'stub',
    region: 'here',
    zone: undefined,
    instanceType: 'host',
    cpus: 4,
    accelerator: undefined,
    spot: false,
    hourlyUsd: 1,
    ...change,
  };
}

/** The same as a place offers it. */
export function anOffer(change: Partial<Offer> = {}): Offer {
  return { ...aPlaceableOffer(), memoryGb: 16, accelerator: undefined, ...change };
}

/** What a replica wants of a machine when it wants nothing in particular. */
export function aMachineSpec(change: Partial<MachineSpec> = {}): MachineSpec {
  return {
    tags: {},
    labels: {},
    ports: [],
    clients: [],
    diskSizeGb: 1,
    diskTier: undefined,
    imageId: undefined,
    nodes: 1,
    volumes: {},
    placeConfig: {},
    role: 'replica',
    ...change,
  };
}

/** A service section with the documented defaults and two replicas. */
export function aServiceSpec(change: Partial<ServiceSpec> = {}): ServiceSpec {
  return {
    readinessProbe: {
      path: '/',
      headers: {},
      postData: undefined,
      initialDelaySeconds: 1200,
      timeoutSeconds: 15,
      intervalSeconds: 10,
      failureThresholdSeconds: 180,
    },
    replicaPolicy: {
      minReplicas: 2,
      maxReplicas: 2,
      numOverprovision: 0,
      targetQpsPerReplica: undefined,
      upscaleDelaySeconds: 300,
      downscaleDelaySeconds: 1200,
      dynamicOndemandFallback: false,
      baseOndemandFallbackReplicas: 0,
      spotPlacer: undefined,
    },
    loadBalancingPolicy: 'least_load',
    replicaPort: 8080,
    tls: undefined,
    protocol: 'auto',
    gracefulTerminationSeconds: 60,
    expose: false,
    loadBalancer: {
      port: undefined,
      firstByteTimeoutSeconds: 300,
      idleTimeoutSeconds: 300,
      maxBodyBytes: undefined,
      retryUnsafe: false,
      exposeReplica: false,
      threads: undefined,
      maxRequestLineBytes: 8_192,
      maxHeaderBytes: 32_768,
      maxHeaderCount: 100,
      maxConnections: undefined,
      keepAliveTimeoutSeconds: 75,
      queueSize: 1_000,
      queueBytes: 67_108_864,
      queueTimeoutSeconds: undefined,
      trustedProxies: [],
      metricsPort: undefined,
    },
    ...change,
  };
}

/** A task that serves. */
export function aTask(change: Partial<Task> = {}): Task {
  return {
    name: undefined,
    workdir: undefined,
    numNodes: 1,
    resources: { order: 'any', choices: [someResources()] },
    fileMounts: [],
    envs: {},
    secrets: {},
    setup: undefined,
    run: 'exec python3 -m http.server 8080',
    service: aServiceSpec(),
    volumes: {},
    placeConfig: {},
    otherFields: [],
    ...change,
  };
}

/** A service as it is right after `up`. */
export function aService(change: Partial<ServiceRecord> = {}): ServiceRecord {
  return {
    name: 'chat',
    key: '0a1b2c3d',
    state: 'CONTROLLER_INIT',
    desired: 'up',
    purge: false,
    host: '127.0.0.1',
    port: 30_001,
    version: 1,
    createdAt: 1_000,
    firstReadyAt: null,
    reason: null,
    nextReplicaId: 1,
    memory: { initialised: false, autoscaler: null, failures: [], gaveUp: false },
    reconciler: null,
    balancer: null,
    processesFailed: false,
    revision: 1,
    ...change,
  };
}

/** The first version of a service. */
export function aVersion(change: Partial<VersionRecord> = {}): VersionRecord {
  return { service: 'chat', version: 1, task: aTask(), source: 'service: {}\n', createdAt: 1_000, ...change };
}

/** A replica that has just been thought of. */
export function aReplica(change: Partial<ReplicaRecord> = {}): ReplicaRecord {
  return {
    service: 'chat',
    id: 1,
    version: 1,
    state: 'PENDING',
    key: 'chat-0a1b2c3d-1',
    place: null,
    machineId: null,
    address: null,
    createdAt: 1_000,
    launchedAt: null,
    startedAt: null,
    firstReadyAt: null,
    readySince: null,
    firstProbeFailureAt: null,
    endCause: null,
    reason: null,
    endRequestedAt: null,
    endedAt: null,
    revision: 1,
    ...change,
  };
}

/** A controller elsewhere for which nothing was asked yet. */
export function aControllerRecord(change: Partial<ControllerRecord> = {}): ControllerRecord {
  return { ...freshControllerRecord({ key: 'c0ffee', wished: '{}', createdAt: 1 }), ...change };
}
