import type { ClusterView, EventView, ReplicaView, RouteReply, ServiceView } from '../../src/api/contract.ts';

/** A replica that has been ready for a minute at noon of 2030-01-01, when a `FakeClock` starts. */
export function aReplicaView(change: Partial<ReplicaView> = {}): ReplicaView {
  return {
    id: 1,
    version: 1,
    status: 'READY',
    endpoint: 'http://10.0.0.2:8080',
    createdAt: '2030-01-01T11:58:50.000Z',
    launchedAt: '2030-01-01T11:58:55.000Z',
    readyAt: '2030-01-01T11:59:00.000Z',
    endedAt: null,
    provider: 'local',
    region: 'local',
    zone: null,
    resources: '1x CPU',
    spot: false,
    hourlyUsd: 0,
    reason: null,
    ...change,
  };
}

/** A service whose only replica is ready. */
export function aServiceView(change: Partial<ServiceView> = {}): ServiceView {
  const replicas = change.replicas ?? [aReplicaView()];
  return {
    name: 'chat',
    status: 'READY',
    activeVersions: [1],
    version: 1,
    createdAt: '2030-01-01T11:58:50.000Z',
    firstReadyAt: '2030-01-01T11:59:00.000Z',
    uptimeSeconds: 60,
    endpoint: 'http://127.0.0.1:30001',
    exposed: false,
    replicasReady: replicas.filter(({ status }) => status === 'READY').length,
    replicasTotal: replicas.filter(({ endedAt }) => endedAt === null).length,
    targetReplicas: 1,
    autoscaling: 'Fixed 1 replica',
    loadBalancingPolicy: 'least_load',
    requestedResources: '-',
    hourlyUsd: 0,
    reason: null,
    controllerPid: 100,
    balancerPid: 101,
    replicas,
    ...change,
  };
}

/** A change of a replica's state. */
export function anEventView(change: Partial<EventView> = {}): EventView {
  return {
    id: 1,
    at: '2030-01-01T11:58:55.000Z',
    service: 'chat',
    replicaId: 1,
    from: 'PENDING',
    to: 'PROVISIONING',
    cause: 'launch-started',
    message: 'A machine was asked for.',
    ...change,
  };
}

/** A cluster whose only job has succeeded. */
export function aClusterView(change: Partial<ClusterView> = {}): ClusterView {
  return {
    name: 'dev',
    status: 'UP',
    launchedAt: '2030-01-01T10:00:00.000Z',
    provider: 'local',
    region: 'local',
    resources: '1x CPU',
    hourlyUsd: 0,
    reason: null,
    ports: [],
    jobs: [
      { id: 1, name: null, status: 'SUCCEEDED', createdAt: '2030-01-01T10:00:00.000Z', endedAt: '2030-01-01T10:01:00.000Z', exitCode: 0 },
    ],
    ...change,
  };
}

/** A controller with one service. */
export function aHealthReply(change: Partial<RouteReply<'health'>> = {}): RouteReply<'health'> {
  return {
    apiVersion: 1,
    version: '0.1.0',
    pid: 99,
    startedAt: '2030-01-01T11:00:00.000Z',
    services: 1,
    serviceLimit: 16,
    place: null,
    clusters: 0,
    idleStopSeconds: null,
    log: '/home/ann/.svc/controller.log',
    ...change,
  };
}
