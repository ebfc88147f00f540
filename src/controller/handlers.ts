import type { ClusterView, ServiceView } from '../api/contract.ts';
import type { ApiHandlers } from '../api/handlers.ts';
import { apiVersion } from '../api/routes.ts';
import { isAlive } from '../domain/replica/replica-state.ts';
import { scarceSpace } from '../shared/system/disk-reserve.ts';
import { SvcError } from '../shared/errors.ts';
import { isoTime } from '../shared/clock.ts';
import { namesOf, notNamed } from '../shared/did-you-mean.ts';
import { servicePaths } from '../shared/paths.ts';
import { redactor } from './service/replica-program.ts';
import { compareAndSwap } from '../store/compare-and-swap.ts';
import { type ClusterRecord, type ReplicaRecord, type ServiceRecord, subjectEvent } from '../domain/records.ts';
import { edgeProxyLogs, edgeProxyMetrics } from './edge-proxy/edge-proxy-reports.ts';
import { clusterPaths, jobLogs } from './cluster/cluster-paths.ts';
import type { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { readLogs } from './logs.ts';
import { explainService } from './explain-service.ts';
import { deployService } from './deploy/deploy-service.ts';
import { pauseUpdate } from './deploy/pause-update.ts';
import { rollbackService, updateService } from './deploy/update-service.ts';
import { readMetrics } from './read-metrics.ts';
import { snapshotState } from './snapshot-state.ts';
import { retryService } from './retry-service.ts';
import type { ServiceProcesses } from './supervise/service-processes.ts';
import { clusterView, eventView, serviceView, versionViews } from './views.ts';
import { replicaEvent, transition, type ReplicaChange, type TransitionFacts } from '../domain/transition.ts';

interface HandlerDeps {
  readonly context: DaemonContext;
  readonly processes: ServiceProcesses;
  readonly clusters: Clusters;
  /** Runs work during which the daemon must not stop by itself. */
  readonly whileBusy: <Result>(work: () => Promise<Result>) => Promise<Result>;
  idleStopMs(): number | null;
  stop(): void;
}

const followPollMs = 150;

/** A user's termination of a replica, as a change of its record; undefined when it is ending or has ended. */
function endRequest(replica: ReplicaRecord, purge: boolean, now: number, serviceKey: string): ReplicaChange | undefined {
  const explain = (message: string): Pick<TransitionFacts, 'explanation' | 'now' | 'serviceKey'> => ({
    explanation: { cause: 'user', message },
    now,
    serviceKey,
  });
  if (isAlive(replica.state) || replica.state === 'UNKNOWN') {
    const event = replicaEvent(replica, { ...explain('A user asked to end it.'), to: replica.state });
    return { change: { endRequestedAt: replica.endRequestedAt ?? now }, event };
  }
  if (!purge) return undefined;
  const dropped = { type: 'dropped', cause: replica.endCause ?? 'user' } as const;
  return transition(replica, dropped, explain('A user dropped its record by force; its machine may still exist.'));
}

/** The handler of each route of the control API. */
export function createHandlers(deps: HandlerDeps): ApiHandlers {
  const { context, processes, clusters, whileBusy } = deps;
  const { store, clock, paths } = context;

  const found = async (name: string): Promise<ServiceRecord> => {
    const service = await store.services.get(name);
    if (service === undefined) throw notNamed('service', name, namesOf(await store.services.list()));
    return service;
  };
  // The service may be removed between two reads.
  const viewIfExists = async (service: ServiceRecord): Promise<ServiceView | undefined> => {
    const version = await store.services.version(service.name, service.version);
    if (version === undefined) return undefined;
    return serviceView(
      service,
      await store.replicas.list(service.name),
      version.task,
      {
        ...processes.identities(service.key),
        crashes: processes.crashes(service.key),
        isHandingOver: processes.isHandingOver(service),
        edgeProxies: processes.edgeProxies?.at(service.key),
      },
      clock.now(),
      context.controllerHost?.publicHost,
    );
  };

  const view = async (service: ServiceRecord): Promise<ServiceView> => {
    const shown = await viewIfExists(service);
    if (shown === undefined) throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${service.name}' went away.`);
    return shown;
  };

  const clusterNow = async (cluster: ClusterRecord): Promise<ClusterView> =>
    clusterView(cluster, await store.clusters.jobs(cluster.name), clusters.portsOf(cluster.key));

  const applyVersion = async (name: string): Promise<void> => {
    const service = await found(name);
    await processes.ensure(service);
    await processes.updateEdgeProxies();
    processes.wake(service.key);
  };

  return {
    async health() {
      const idle = deps.idleStopMs();
      return {
        apiVersion,
        version: context.version,
        pid: process.pid,
        startedAt: isoTime(context.startedAt),
        services: (await store.services.list()).length,
        serviceLimit: context.serviceLimit,
        clusters: (await store.clusters.list()).length,
        idleStopSeconds: idle === null ? null : Math.ceil(idle / 1_000),
        log: paths.controllerLog,
        place: context.controllerHost?.machine ?? null,
      };
    },
    async stopController({ body }) {
      const services = await store.services.list();
      const living = await store.clusters.list();
      if (!body.keepServices && services.length + living.length > 0) {
        const names = [...services, ...living].map((one) => one.name).join(', ');
        throw new SvcError('SVC_CONTROLLER_BUSY', `The controller still has: ${names}.`);
      }
      deps.stop();
      return { stopping: true };
    },
    snapshotState: () => snapshotState(context),
    async listServices({ signal }) {
      const views = await Promise.all((await store.services.list()).map(viewIfExists));
      const free = scarceSpace(paths);
      const freeInodes = free?.inodes === Number.POSITIVE_INFINITY ? null : (free?.inodes ?? null);
      return {
        services: views.filter((one) => one !== undefined),
        leftovers: await processes.leftovers.list(signal),
        ...(free !== undefined && { disk: { folder: paths.home, freeBytes: free.bytes, freeInodes } }),
      };
    },
    async sweep({ signal }) {
      return whileBusy(() =>
        processes.leftovers.sweep(
          ({ kind, key, name }) => (kind === 'cluster' ? clusters.forget(name ?? key, key) : processes.remove(key)),
          signal,
        ),
      );
    },
    getService: async ({ params }) => view(await found(params.name)),
    async createService({ body }) {
      const service = await whileBusy(() => deployService(context, processes, body));
      const warning = context.ports.problems.get(service.port);
      return { service: await view(await found(service.name)), ...(warning !== undefined && { warning }) };
    },
    async terminateService({ params, query }) {
      let key = '';
      await compareAndSwap(
        () => found(params.name),
        (service) => {
          ({ key } = service);
          if (service.desired === 'down' && service.purge === (query.purge || service.purge)) return undefined;
          const message = query.purge ? 'Taken down by force.' : 'Taken down by a user.';
          const event = subjectEvent(service, { at: clock.now(), from: service.state, to: 'SHUTTING_DOWN', cause: 'user', message });
          return store.services.update(service, { desired: 'down', purge: query.purge, state: 'SHUTTING_DOWN' }, event);
        },
      );
      processes.wake(key);
      return { service: params.name };
    },
    async updateService({ params, body }) {
      const plan = await whileBusy(async () => updateService(context, await found(params.name), body));
      if (!body.dryRun) await applyVersion(params.name);
      return plan;
    },
    async listVersions({ params }) {
      const service = await found(params.name);
      const versions = await store.services.versions(service.name);
      return { versions: [...versionViews(service, versions, await store.replicas.list(service.name))] };
    },
    async serviceFile({ params }) {
      const service = await found(params.name);
      const version = (await store.services.versions(service.name)).find((one) => one.version === service.version);
      if (version === undefined) throw new Error(`the current version of ${service.name} has no record`);
      const { envs, secrets } = version.task;
      const redactText = redactor(version.task);
      const shown = Object.fromEntries(Object.entries(envs).map(([name, value]) => [name, redactText(value)]));
      return { source: redactText(version.source), envs: shown, secrets: Object.keys(secrets) };
    },
    async rollbackService({ params, body }) {
      const plan = await whileBusy(async () => rollbackService(context, await found(params.name), body));
      if (!body.dryRun) await applyVersion(params.name);
      return plan;
    },
    async pauseUpdate({ params, body }) {
      const reply = await pauseUpdate(context, () => found(params.name), body.paused);
      processes.wake((await found(params.name)).key);
      return { service: params.name, ...reply };
    },
    async retryService({ params }) {
      const retried = await retryService(context, () => found(params.name));
      processes.wake((await found(params.name)).key);
      return { service: params.name, ...retried };
    },
    async terminateReplica({ params, query }) {
      for (;;) {
        const service = await found(params.name);
        const replica = (await store.replicas.list(params.name)).find((one) => one.id === params.id);
        if (replica === undefined) {
          throw new SvcError('SVC_REPLICA_NOT_FOUND', `Service '${params.name}' has no replica ${params.id}.`, {
            hint: `Run: svc serve status ${params.name}`,
          });
        }
        const ended = endRequest(replica, query.purge, clock.now(), service.key);
        if (ended === undefined)
          throw new SvcError('SVC_REPLICA_ENDING', `Replica ${params.id} of '${params.name}' is ${replica.state} already.`);
        if ((await store.replicas.update(replica, ended.change, ended.event)) === undefined) continue;
        processes.wake(service.key);
        return { service: params.name, replicaId: params.id };
      }
    },
    explainService: async ({ params, query }) => explainService(context, await found(params.name), query),
    async *serviceEvents({ params, query, signal }) {
      let { after } = query;
      const service = await store.services.get(params.name);
      if (service === undefined && (await store.events.list({ subject: params.name, limit: 1 })).length === 0) await found(params.name);
      for (;;) {
        const living = await store.services.get(params.name);
        const key = service === undefined ? {} : { subjectKey: service.key };
        for (const event of await store.events.list({ subject: params.name, ...key, after })) {
          after = event.id;
          yield eventView(event);
        }
        if (!query.follow || signal.aborted || living === undefined || living.key !== service?.key) return;
        await clock.sleep(followPollMs, signal);
      }
    },
    async *serviceLogs({ params, query, signal }) {
      const service = await found(params.name);
      const files = servicePaths(paths, service.key);
      const gone = async (): Promise<boolean> => (await store.services.get(service.name))?.key !== service.key;
      if (query.target === 'load-balancer' && processes.edgeProxies !== undefined) {
        const logQuery = { tail: query.tail, follow: query.follow };
        yield* edgeProxyLogs(processes.edgeProxies, service.name, service.key, logQuery, signal);
        return;
      }
      if (query.target !== 'replica') {
        const own = query.target === 'controller' ? files.reconcilerLog : files.balancerLog;
        // Log rotation reuses the same older file. A client that follows the log has read it already.
        const older = query.follow ? [] : [`${own}.1`];
        const logs = [...older, own, ...(query.target === 'controller' ? [] : [`${files.accessLog}.1`, files.accessLog])];
        yield* readLogs({ files: logs, tail: query.tail, follow: query.follow, ended: gone }, clock, signal);
        return;
      }
      const id = query.id ?? 0;
      const replica = async () => (await store.replicas.list(service.name)).find((one) => one.id === id);
      if ((await replica()) === undefined) {
        throw new SvcError('SVC_REPLICA_NOT_FOUND', `Service '${params.name}' has no replica ${id}.`, {
          hint: `Run: svc serve status ${params.name}`,
        });
      }
      const ended = async (): Promise<boolean> => {
        const now = await replica();
        return now === undefined || now.endedAt !== null || gone();
      };
      yield* readLogs({ files: [files.provisionLog(id), files.jobLog(id)], tail: query.tail, follow: query.follow, ended }, clock, signal);
    },
    async *serviceMetrics({ params, signal }) {
      const service = await found(params.name);
      const { edgeProxies } = processes;
      yield edgeProxies === undefined
        ? await readMetrics(service.name, servicePaths(paths, service.key).metricsSocket, signal)
        : await edgeProxyMetrics(edgeProxies, service.name, service.key, signal);
    },
    async listClusters() {
      return { clusters: await Promise.all((await store.clusters.list()).map(clusterNow)) };
    },
    async launch({ body }) {
      const { cluster, job } = await whileBusy(() => clusters.launch(body));
      return { cluster: await clusterNow(cluster), jobId: job.id };
    },
    async terminateCluster({ params, query }) {
      await clusters.terminate(params.name, query.purge);
      return { cluster: params.name };
    },
    async *clusterLogs({ params, query, signal }) {
      const cluster = await store.clusters.get(params.name);
      if (cluster === undefined) throw notNamed('cluster', params.name, namesOf(await store.clusters.list()));
      const jobs = await store.clusters.jobs(cluster.name);
      const id = query.job ?? jobs.at(-1)?.id ?? 1;
      const files = jobLogs(clusterPaths(paths, cluster.key), id, { isFirst: id === jobs[0]?.id, isUp: cluster.state !== 'INIT' });
      const ended = async (): Promise<boolean> => {
        const now = await store.clusters.get(cluster.name);
        if (now === undefined || now.key !== cluster.key || now.state === 'FAILED') return true;
        return (await store.clusters.jobs(cluster.name)).find((job) => job.id === id)?.endedAt !== null;
      };
      yield* readLogs({ files, tail: query.tail, follow: query.follow, ended }, clock, signal);
    },
  };
}
