import { readLoadBalancer } from '../../src/domain/load-balancer.ts';
import { defaultUpdate, type Resources, type ServiceSpec, type Task } from '../../src/domain/task.ts';
import type { PlaceableOffer } from '../../src/domain/placement.ts';
import { newReplica, type ReplicaRecord, type ServiceRecord, type VersionRecord } from '../../src/domain/records.ts';
import { freshControllerRecord, type ControllerRecord } from '../../src/launcher/controller-record.ts';
import type { MachineSpec, Offer } from '../../src/providers/provider.ts';

/** Resources without any requirement. */
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

/** An available machine. */
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

/** The same, as a provider offers it. */
export function anOffer(change: Partial<Offer> = {}): Offer {
  return { ...aPlaceableOffer(), memoryGb: 16, accelerator: undefined, ...change };
}

/** A replica's request for a machine without any requirement. */
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
    providerConfig: {},
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
    loadBalancer: readLoadBalancer({}),
    update: defaultUpdate,
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
    providerConfig: {},
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

/** A replica that was just recorded. */
export function aReplica(change: Partial<ReplicaRecord> = {}): ReplicaRecord {
  const known = { id: 1, key: 'chat-0a1b2c3d-1', createdAt: 1_000, revision: 1 };
  return newReplica({ name: 'chat', version: 1 }, { ...known, ...change });
}

/** A remote controller without any requirement. */
export function aControllerRecord(change: Partial<ControllerRecord> = {}): ControllerRecord {
  return { ...freshControllerRecord({ key: 'c0ffee', requestedResources: '{}', createdAt: 1 }), ...change };
}
