import { networkInterfaces } from 'node:os';
import type { ClusterView, EventView, JobView, ReplicaView, ServiceView } from '../api/contract.ts';
import { isAlive, isEnded, isFailed } from '../domain/replica-state.ts';
import type { Task } from '../domain/task.ts';
import { describeAutoscaling, describeResources } from '../spec/describe.ts';
import type { HostedAt } from './balancer-host/host-group.ts';
import { isoTime } from '../shared/clock.ts';
import type { ProcessIdentity } from '../shared/process-identity.ts';
import type { ClusterRecord, EventRecord, JobRecord, ReplicaRecord, ServiceRecord } from '../store/records.ts';

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

/** A replica as listings show it. */
export function replicaView(replica: ReplicaRecord): ReplicaView {
  const { address, place } = replica;
  return {
    id: replica.id,
    version: replica.version,
    status: replica.state,
    endpoint:
      address === null
        ? null
        : address.kind === 'tcp'
          ? `http://${address.host}:${address.port}`
          : `${address.kind}:${address.path}:${address.port}`,
    createdAt: isoTime(replica.createdAt),
    launchedAt: isoOrNull(replica.launchedAt),
    readyAt: isoOrNull(replica.firstReadyAt),
    endedAt: isoOrNull(replica.endedAt),
    provider: place?.provider ?? null,
    region: place?.region ?? null,
    zone: place?.zone ?? null,
    resources: place?.resources ?? null,
    spot: place?.spot ?? false,
    hourlyUsd: place?.hourlyUsd ?? null,
    reason: replica.reason,
  };
}

/** Living processes of a service, as its supervisors know them. */
export interface ServiceProcessIds {
  readonly reconciler: ProcessIdentity | undefined;
  readonly balancer: ProcessIdentity | undefined;
  /** Where balancer hosts serve its endpoint: how it does at each. */
  readonly hosted?: readonly HostedAt[] | undefined;
}

/** A service with its replicas as listings show it. */
export function serviceView(
  service: ServiceRecord,
  replicas: readonly ReplicaRecord[],
  task: Task,
  processes: ServiceProcessIds,
  now: number,
  publicHost?: string,
): ServiceView {
  const living = replicas.filter((replica) => isAlive(replica.state));
  const policy = task.service?.replicaPolicy;
  const target = service.memory.autoscaler?.target ?? policy?.minReplicas ?? 0;
  return {
    name: service.name,
    status: service.state,
    activeVersions: [...new Set(living.map((replica) => replica.version))].toSorted((a, b) => a - b),
    version: service.version,
    createdAt: isoTime(service.createdAt),
    firstReadyAt: isoOrNull(service.firstReadyAt),
    uptimeSeconds: service.firstReadyAt === null ? null : Math.max(0, Math.floor((now - service.firstReadyAt) / 1_000)),
    endpoint: `${task.service?.tls === undefined ? 'http' : 'https'}://${endpointHost(service.host, publicHost)}:${service.port}`,
    exposed: service.host !== '127.0.0.1',
    replicasReady: replicas.filter((replica) => replica.state === 'READY').length,
    replicasTotal: replicas.filter((replica) => !isFailed(replica.state) && !isEnded(replica.state)).length,
    targetReplicas: target + (target > 0 ? (policy?.numOverprovision ?? 0) : 0),
    autoscaling: describeAutoscaling(task),
    loadBalancingPolicy: task.service?.loadBalancingPolicy ?? 'least_load',
    requestedResources: describeResources(task),
    hourlyUsd: replicas.reduce((sum, replica) => sum + (isEnded(replica.state) ? 0 : (replica.place?.hourlyUsd ?? 0)), 0),
    reason: service.reason,
    controllerPid: processes.reconciler?.pid ?? null,
    balancerPid: processes.balancer?.pid ?? null,
    ...(processes.hosted === undefined ? {} : { balancers: processes.hosted.map(balancerView) }),
    replicas: replicas.map(replicaView),
  };
}

function balancerView({ member, state }: HostedAt): NonNullable<ServiceView['balancers']>[number] {
  return { name: member.name, status: state ?? 'unreachable' };
}

/** All addresses cannot be dialled: shown is one by which others reach this machine, or loopback where it has none. */
function endpointHost(host: string, publicHost: string | undefined): string {
  if (host !== '0.0.0.0') return host;
  if (publicHost !== undefined) return publicHost.includes(':') ? `[${publicHost}]` : publicHost;
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}

/** One line of a history. */
export function eventView(event: EventRecord): EventView {
  const { id, replicaId, from, to, cause, message } = event;
  return { id, at: isoTime(event.at), service: event.subject, replicaId, from, to, cause, message };
}

/** A cluster with its jobs as listings show it. */
export function clusterView(cluster: ClusterRecord, jobs: readonly JobRecord[]): ClusterView {
  const { place } = cluster;
  return {
    name: cluster.name,
    status: cluster.state,
    launchedAt: isoTime(cluster.createdAt),
    provider: place?.provider ?? null,
    region: place?.region ?? null,
    resources: place?.resources ?? null,
    hourlyUsd: place?.hourlyUsd ?? null,
    reason: cluster.reason,
    jobs: jobs.map(jobView),
  };
}

function jobView(job: JobRecord): JobView {
  return {
    id: job.id,
    name: job.task.name ?? null,
    status: job.state,
    createdAt: isoTime(job.createdAt),
    endedAt: isoOrNull(job.endedAt),
    exitCode: job.exitCode,
  };
}
