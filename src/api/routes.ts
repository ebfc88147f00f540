/** One route of the control API. Plain data, so that the client does not load the server's validation. */
export interface RouteData {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `:x` is a path parameter. */
  readonly path: string;
  /** `json`: one reply; `lines`: newline-delimited JSON until the end; `text`: bytes as they arrive. */
  readonly reply: 'json' | 'lines' | 'text';
  readonly summary: string;
}

/** Must rise when a request or reply changes incompatibly. Client and server compare it in each call. */
export const apiVersion = 1;

/** Header with `apiVersion` in every request and reply. A request without it, as by hand with curl, is accepted too. */
export const apiVersionHeader = 'x-svc-api-version';

/** Header with the server's version of svc in every reply. The client shows it in messages. */
export const svcVersionHeader = 'x-svc-version';

/** Every route. A test compares them with `contract.ts`; docs/reference/api.md is generated from both. */
export const routes = {
  health: { method: 'GET', path: '/v1/health', reply: 'json', summary: 'Version, process and load of the controller' },
  stopController: { method: 'POST', path: '/v1/controller/stop', reply: 'json', summary: 'Ends the controller process' },
  snapshotState: {
    method: 'POST',
    path: '/v1/controller/snapshot',
    reply: 'json',
    summary: 'Writes a consistent copy of the state database to a folder of the controller, for a backup',
  },
  listServices: { method: 'GET', path: '/v1/services', reply: 'json', summary: 'All services with their replicas' },
  sweep: {
    method: 'POST',
    path: '/v1/leftovers/sweep',
    reply: 'json',
    summary: 'Removes what is left of services that the state does not know',
  },
  getService: { method: 'GET', path: '/v1/services/:name', reply: 'json', summary: 'One service with its replicas' },
  createService: { method: 'POST', path: '/v1/services', reply: 'json', summary: 'Deploys a service' },
  terminateService: { method: 'DELETE', path: '/v1/services/:name', reply: 'json', summary: 'Terminates a service' },
  updateService: {
    method: 'POST',
    path: '/v1/services/:name/versions',
    reply: 'json',
    summary: 'Replaces the file of a service; its replicas follow',
  },
  listVersions: { method: 'GET', path: '/v1/services/:name/versions', reply: 'json', summary: 'The versions of a service' },
  serviceFile: {
    method: 'GET',
    path: '/v1/services/:name/file',
    reply: 'json',
    summary: 'The file of the current version, without values of secrets',
  },
  rollbackService: {
    method: 'POST',
    path: '/v1/services/:name/rollback',
    reply: 'json',
    summary: 'Goes back to an earlier version of a service',
  },
  pauseUpdate: {
    method: 'POST',
    path: '/v1/services/:name/pause',
    reply: 'json',
    summary: 'Holds the update of a service, or lets it go on',
  },
  retryService: {
    method: 'POST',
    path: '/v1/services/:name/retry',
    reply: 'json',
    summary: 'Ends what providers refused to a service: they are asked again at once',
  },
  terminateReplica: {
    method: 'DELETE',
    path: '/v1/services/:name/replicas/:id',
    reply: 'json',
    summary: 'Ends one replica; it is replaced',
  },
  serviceEvents: { method: 'GET', path: '/v1/services/:name/events', reply: 'lines', summary: 'History of a service' },
  explainService: {
    method: 'GET',
    path: '/v1/services/:name/explain',
    reply: 'json',
    summary: 'How the machines of a service were found, and what could be had now',
  },
  serviceLogs: {
    method: 'GET',
    path: '/v1/services/:name/logs',
    reply: 'text',
    summary: 'Log of a replica, the controller or the balancer',
  },
  serviceMetrics: {
    method: 'GET',
    path: '/v1/services/:name/metrics',
    reply: 'text',
    summary: 'Metrics of the endpoint, in the text format of Prometheus',
  },
  listClusters: { method: 'GET', path: '/v1/clusters', reply: 'json', summary: 'All clusters with their jobs' },
  launch: { method: 'POST', path: '/v1/clusters', reply: 'json', summary: 'Runs a task on a new or existing cluster' },
  terminateCluster: { method: 'DELETE', path: '/v1/clusters/:name', reply: 'json', summary: 'Takes a cluster down' },
  clusterLogs: { method: 'GET', path: '/v1/clusters/:name/logs', reply: 'text', summary: 'Output of a job' },
} as const satisfies Record<string, RouteData>;

export type RouteName = keyof typeof routes;

const isRouteName = (name: string): name is RouteName => Object.hasOwn(routes, name);

/** The names of all routes, in order. */
export const routeNames: readonly RouteName[] = Object.keys(routes).filter(isRouteName);

/** Answered for any API version, so that a client can detect a controller of another version and replace it. */
export const versionlessRoutes: readonly RouteName[] = ['health', 'stopController'];

/** Names of the routes with a given kind of reply. */
export type RoutesReplying<Kind extends RouteData['reply']> = {
  [Name in RouteName]: (typeof routes)[Name]['reply'] extends Kind ? Name : never;
}[RouteName];
