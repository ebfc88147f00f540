import { join } from 'node:path';
import { contract, type ClusterView, type ReplicaView, type RouteReply, type ServiceView } from '../../src/api/contract.ts';
import type { ApiHandlers } from '../../src/api/handlers.ts';
import { createClient, type ApiClient } from '../../src/api/client.ts';
import { serveApi, type ApiServer } from '../../src/api/server.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { withTempHome } from './temp-home.ts';

const at = '2030-01-01T12:00:00.000Z';

/** A replica as the API shows it. */
export const aReplicaView: ReplicaView = {
  id: 1,
  version: 1,
  status: 'READY',
  endpoint: 'http://127.0.0.1:8080',
  createdAt: at,
  launchedAt: at,
  readyAt: at,
  endedAt: null,
  provider: 'local',
  region: 'local',
  zone: null,
  resources: '1x(cpus=2)',
  spot: false,
  hourlyUsd: 0,
  reason: null,
};

/** A service as the API shows it. */
export const aServiceView: ServiceView = {
  name: 'chat',
  status: 'READY',
  activeVersions: [1],
  version: 1,
  createdAt: at,
  firstReadyAt: at,
  uptimeSeconds: 12.5,
  endpoint: 'http://127.0.0.1:30001',
  exposed: false,
  replicasReady: 1,
  replicasTotal: 1,
  targetReplicas: 1,
  autoscaling: 'fixed',
  loadBalancingPolicy: 'least_load',
  requestedResources: 'any',
  hourlyUsd: 0,
  reason: null,
  controllerPid: 12,
  balancerPid: 13,
  replicas: [aReplicaView],
};

/** A cluster as the API shows it. */
export const aClusterView: ClusterView = {
  name: 'box',
  status: 'UP',
  launchedAt: at,
  provider: 'local',
  region: 'local',
  resources: null,
  hourlyUsd: null,
  reason: null,
  ports: [],
  jobs: [{ id: 1, name: null, status: 'RUNNING', createdAt: at, endedAt: null, exitCode: null }],
};

/** The reply of `health`. */
export const aHealth: RouteReply<'health'> = {
  apiVersion: 1,
  version: '1.2.3',
  pid: 1,
  startedAt: at,
  services: 0,
  serviceLimit: 16,
  place: null,
  clusters: 0,
  idleStopSeconds: null,
  log: '/log',
};

/** The reply of `updateService` and `rollbackService`. */
export const anUpdatePlan: RouteReply<'updateService'> = {
  version: 2,
  from: 1,
  changes: ['-run: a', '+run: b'],
  replaced: 1,
  keepsReplicas: false,
  update: { mode: 'rolling', surge: 1, maxUnavailable: 0, steps: [5, 25, 50], bakeSeconds: 300 },
};

/** A line of a history. */
export function anEventView(id: number, message = 'It happened.'): RouteReply<'serviceEvents'> {
  return contract.serviceEvents.reply.parse({ id, at, service: 'chat', replicaId: null, from: null, to: null, cause: 'test', message });
}

const unexpected = (): never => {
  throw new Error('this route was not to be called');
};

/** Handlers of which only the given ones may be called. */
export function handlersWith(given: Partial<ApiHandlers>): ApiHandlers {
  return {
    health: unexpected,
    snapshotState: unexpected,
    stopController: unexpected,
    listServices: unexpected,
    sweep: unexpected,
    getService: unexpected,
    createService: unexpected,
    terminateService: unexpected,
    pauseUpdate: unexpected,
    retryService: unexpected,
    updateService: unexpected,
    listVersions: unexpected,
    serviceFile: unexpected,
    rollbackService: unexpected,
    terminateReplica: unexpected,
    serviceEvents: unexpected,
    explainService: unexpected,
    serviceLogs: unexpected,
    serviceMetrics: unexpected,
    listClusters: unexpected,
    launch: unexpected,
    terminateCluster: unexpected,
    clusterLogs: unexpected,
    ...given,
  };
}

/** An API on a socket in a new folder. */
export interface ServedApi {
  readonly client: ApiClient;
  readonly server: ApiServer;
  readonly socketPath: string;
  /** Messages of errors in the log. */
  readonly logged: readonly string[];
}

/** Serves handlers over a real socket while `use` runs. */
export async function withApi(given: Partial<ApiHandlers>, use: (api: ServedApi) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const socketPath = join(home, 'run', 'api.sock');
    const logged: string[] = [];
    const log = {
      error: ({ err }: { readonly err: unknown }) => void logged.push(err instanceof Error ? err.message : String(err)),
      debug: () => undefined,
    };
    const server = await serveApi({
      socketPath,
      handlers: handlersWith(given),
      log,
      clock: systemClock,
      version: '1.2.3',
      checkReplies: true,
    });
    try {
      await use({ client: createClient({ socketPath }), server, socketPath, logged });
    } finally {
      await server.close();
    }
  });
}
