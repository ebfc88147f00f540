import type { ServiceView } from '../api/contract.ts';
import type { ApiHandlers } from '../api/handlers.ts';
import { apiVersion } from '../api/routes.ts';
import { finalStates, isAlive } from '../domain/replica-state.ts';
import { SvcError } from '../shared/errors.ts';
import { isoTime } from '../shared/clock.ts';
import { namesOf, notNamed } from '../shared/not-named.ts';
import { servicePaths } from '../shared/paths.ts';
import type { ReplicaRecord, ServiceRecord } from '../store/records.ts';
import type { Change } from '../store/store.ts';
import { hostedLogs, hostedMetrics } from './balancer-host/host-reports.ts';
import { clusterPaths, jobLogs } from './cluster/cluster-paths.ts';
import type { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { readLogs } from './logs.ts';
import { explainService } from './explain-service.ts';
import { putUp } from './put-up.ts';
import { readMetrics } from './read-metrics.ts';
import type { ServiceProcesses } from './service-processes.ts';
import { clusterView, eventView, serviceView } from './views.ts';
import { subjectEvent } from './subject-event.ts';

/** What the handlers do their work with. */
export interface HandlerDeps {
  readonly context: DaemonContext;
  readonly processes: ServiceProcesses;
  readonly clusters: Clusters;
  /** Runs work during which the daemon must not stop by itself. */
  readonly whileBusy: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** ms until the daemon stops by itself; null while it is needed. */
  idleStopMs(): number | null;
  /** Ends the daemon once the reply is out. */
  stop(): void;
}

const followPollMs = 150;

/** What ending a replica by hand means for its record; undefined when it is going, or gone, anyway. */
function endRequest(replica: ReplicaRecord, purge: boolean, now: number): Change<ReplicaRecord> | undefined {
  if (isAlive(replica.state) || replica.state === 'UNKNOWN') return { endRequestedAt: replica.endRequestedAt ?? now };
  if (!purge || replica.state !== 'FAILED_CLEANUP') return undefined;
  return { state: finalStates[replica.endCause ?? 'user'], endedAt: now };
}

/** What each route of the control API does. */
export function createHandlers(deps: HandlerDeps): ApiHandlers {
  const { context, processes, clusters, whileBusy } = deps;
  const { store, clock, paths } = context;

  const found = async (name: string): Promise<ServiceRecord> => {
    const service = await store.services.get(name);
    if (service === undefined) throw notNamed('service', name, namesOf(await store.services.list()));
    return service;
  };
  // It may go away between two reads.
  const viewIfThere = async (service: ServiceRecord): Promise<ServiceView | undefined> => {
    const version = await store.services.version(service.name, service.version);
    if (version === undefined) return undefined;
    return serviceView(
      service,
      await store.replicas.list(service.name),
      version.task,
      { ...processes.identities(service.key), hosted: processes.hosts?.at(service.key) },
      clock.now(),
      context.host?.publicHost,
    );
  };

  const view = async (service: ServiceRecord): Promise<ServiceView> => {
    const shown = await viewIfThere(service);
    if (shown === undefined) throw new SvcError('SVC_SERVICE_NOT_FOUND', `Service '${service.name}' went away.`);
    return shown;
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
        place: context.host?.place ?? null,
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
    async listServices() {
      const views = await Promise.all((await store.services.list()).map(viewIfThere));
      return { services: views.filter((one) => one !== undefined) };
    },
    getService: async ({ params }) => view(await found(params.name)),
    async createService({ body }) {
      const service = await whileBusy(() => putUp(context, processes, body));
      return { service: await view(await found(service.name)) };
    },
    async terminateService({ params, query }) {
      let service = await found(params.name);
      for (;;) {
        service = await found(params.name);
        if (service.desired === 'down' && service.purge === (query.purge || service.purge)) break;
        const message = query.purge ? 'Taken down by force.' : 'Taken down by a user.';
        const event = subjectEvent(service, { at: clock.now(), from: service.state, to: 'SHUTTING_DOWN', cause: 'user', message });
        if ((await store.services.update(service, { desired: 'down', purge: query.purge, state: 'SHUTTING_DOWN' }, event)) !== undefined)
          break;
      }
      processes.wake(service.key);
      return { service: params.name };
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
        const change = endRequest(replica, query.purge, clock.now());
        if (change === undefined)
          throw new SvcError('SVC_REPLICA_ENDING', `Replica ${params.id} of '${params.name}' is ${replica.state} already.`);
        const message =
          change.state === undefined ? 'A user asked to end it.' : 'A user dropped its record by force; its machine may still exist.';
        const to = change.state ?? replica.state;
        const event = {
          at: clock.now(),
          subject: service.name,
          subjectKey: service.key,
          replicaId: replica.id,
          from: replica.state,
          to,
          cause: 'user',
          message,
        };
        if ((await store.replicas.update(replica, change, event)) === undefined) continue;
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
      if (query.target === 'load-balancer' && processes.hosts !== undefined) {
        const wish = { tail: query.tail, follow: query.follow };
        yield* hostedLogs(processes.hosts, service.name, service.key, wish, signal);
        return;
      }
      if (query.target !== 'replica') {
        const logs = query.target === 'controller' ? [files.reconcilerLog] : [files.balancerLog, `${files.accessLog}.1`, files.accessLog];
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
      const { hosts } = processes;
      yield hosts === undefined
        ? await readMetrics(service.name, servicePaths(paths, service.key).metricsSocket, signal)
        : await hostedMetrics(hosts, service.name, service.key, signal);
    },
    async listClusters() {
      const all = await store.clusters.list();
      return { clusters: await Promise.all(all.map(async (cluster) => clusterView(cluster, await store.clusters.jobs(cluster.name)))) };
    },
    async launch({ body }) {
      const { cluster, job } = await whileBusy(() => clusters.launch(body));
      return { cluster: clusterView(cluster, await store.clusters.jobs(cluster.name)), jobId: job.id };
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
