import { networkInterfaces } from 'node:os';
import type { BlockerView, ClusterView, EventView, JobView, ReplicaView, RouteReply, ServiceView } from '../api/contract.ts';
import { blockersOf, describeScope } from '../domain/placement/refusals.ts';
import { isAlive, isEnded, isFailed } from '../domain/replica/replica-state.ts';
import type { Task } from '../domain/task.ts';
import { filesVersionOf } from '../domain/rollout.ts';
import { readyOf } from '../domain/update-stage.ts';
import { describeChanges } from '../spec/describe-changes.ts';
import { describeAutoscaling, describeResources } from '../spec/describe.ts';
import type { ProcessCrash } from './supervise/service-processes.ts';
import type { ServiceAtEdgeProxy } from './edge-proxy/edge-proxy-group.ts';
import { isoTime } from '../shared/clock.ts';
import { fingerprint } from '../shared/hex.ts';
import { canonicalJson } from '../shared/json.ts';
import type { ProcessIdentity } from '../shared/system/process-identity.ts';
import type { ClusterRecord, EventRecord, JobRecord, ReplicaRecord, ServiceRecord, VersionRecord } from '../domain/records.ts';

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

function replicaView(replica: ReplicaRecord): ReplicaView {
  const { address, offer } = replica;
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
    provider: offer?.provider ?? null,
    region: offer?.region ?? null,
    zone: offer?.zone ?? null,
    resources: offer?.resources ?? null,
    spot: offer?.spot ?? false,
    hourlyUsd: offer?.hourlyUsd ?? null,
    reason: replica.reason,
  };
}

interface ServiceProcessIds {
  readonly reconciler: ProcessIdentity | undefined;
  readonly balancer: ProcessIdentity | undefined;
  readonly crashes: readonly ProcessCrash[];
  readonly isHandingOver?: boolean;
  readonly edgeProxies?: readonly ServiceAtEdgeProxy[] | undefined;
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
  const blockers = [...blockerViews(service, replicas, now)];
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
    hourlyUsd: replicas.reduce((sum, replica) => sum + (isEnded(replica.state) ? 0 : (replica.offer?.hourlyUsd ?? 0)), 0),
    reason: service.reason,
    ...updateView(service, replicas),
    ...(service.memory.scaled && { lastScaling: { at: isoTime(service.memory.scaled.at), reason: service.memory.scaled.reason } }),
    ...(service.memory.costLimited === undefined ? {} : { costLimited: service.memory.costLimited }),
    controllerPid: processes.reconciler?.pid ?? null,
    balancerPid: processes.balancer?.pid ?? null,
    ...(processes.isHandingOver === true && { handingOver: true }),
    processCrashes: processes.crashes.map(({ lastAt, ...crash }) => ({ ...crash, lastAt: isoTime(lastAt) })),
    ...(processes.edgeProxies === undefined ? {} : { balancers: processes.edgeProxies.map(balancerView) }),
    ...(blockers.length === 0 ? {} : { blockers }),
    replicas: replicas.map(replicaView),
  };
}

function updateView({ memory, version }: ServiceRecord, replicas: readonly ReplicaRecord[]): Pick<ServiceView, 'update'> {
  const { update, gaveUp } = memory;
  if (update === undefined) return {};
  return {
    update: {
      from: update.from,
      mode: update.mode ?? 'rolling',
      startedAt: isoTime(update.at),
      stopped: gaveUp,
      paused: update.paused !== undefined,
      share: update.share ?? null,
      replicasReady: readyOf(replicas, version),
    },
  };
}

/** The versions of a service as listings show them, oldest first. */
export function versionViews(
  { version: current }: ServiceRecord,
  versions: readonly VersionRecord[],
  replicas: readonly ReplicaRecord[],
): RouteReply<'listVersions'>['versions'] {
  return versions.map((one, index) => {
    const before = versions[index - 1];
    const own = replicas.filter(({ version, state }) => version === one.version && isAlive(state));
    return {
      version: one.version,
      createdAt: isoTime(one.createdAt),
      hash: taskHash(one),
      isCurrent: one.version === current,
      replicas: own.length,
      replicasReady: readyOf(own, one.version),
      changes: before === undefined ? [] : describeChanges(before, one, filesVersionOf(before) !== filesVersionOf(one)),
    };
  });
}

function taskHash(version: VersionRecord): string {
  const { task } = version;
  const content = { ...task, filesVersion: undefined, secrets: Object.keys(task.secrets), files: filesVersionOf(version) };
  return fingerprint(canonicalJson(content)).slice(0, 12);
}

/** Limit of listed blockers: a search may have been refused hundreds of offers. */
const mostBlockers = 20;

const waitsForMachine = ({ state, machineId }: ReplicaRecord): boolean =>
  (state === 'PENDING' || state === 'PROVISIONING') && machineId === null;

/** What keeps replicas from getting machines now. Without a waiting replica there is no blocker. */
function blockerViews({ memory }: ServiceRecord, replicas: readonly ReplicaRecord[], now: number): readonly BlockerView[] {
  if (!replicas.some(waitsForMachine)) return [];
  const blockers = blockersOf(memory.placement?.refusals ?? [], now).slice(0, mostBlockers);
  return blockers.map(({ refusal, nextAttemptAt }) => {
    const { offer, kind, scope, count, reason } = refusal;
    return {
      provider: offer.provider,
      region: offer.region,
      zone: offer.zone ?? null,
      instanceType: offer.instanceType,
      cause: kind,
      scope,
      covers: describeScope(refusal),
      reason,
      attempts: count,
      nextAttemptAt: isoTime(nextAttemptAt),
    };
  });
}

function balancerView({ member, state }: ServiceAtEdgeProxy): NonNullable<ServiceView['balancers']>[number] {
  return { name: member.name, status: state ?? 'unreachable' };
}

/** The wildcard address cannot be dialled: shows an address for other machines, or loopback where there is none. */
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
export function clusterView(cluster: ClusterRecord, jobs: readonly JobRecord[], ports: ClusterView['ports']): ClusterView {
  const { offer } = cluster;
  return {
    name: cluster.name,
    status: cluster.state,
    launchedAt: isoTime(cluster.createdAt),
    provider: offer?.provider ?? null,
    region: offer?.region ?? null,
    resources: offer?.resources ?? null,
    hourlyUsd: offer?.hourlyUsd ?? null,
    reason: cluster.reason,
    ports,
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
