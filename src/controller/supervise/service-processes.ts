import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { ServiceSpec } from '../../domain/task.ts';
import { readIfThere, writeFileAtomic } from '../../shared/system/files.ts';
import { hasErrno } from '../../shared/errors.ts';
import { codeVersion } from '../../shared/version.ts';
import { programEntry } from '../../shared/program-files.ts';
import { fingerprint } from '../../shared/hex.ts';
import { servicePaths } from '../../shared/paths.ts';
import type { ProcessIdentity } from '../../shared/system/process-identity.ts';
import type { ProxiedService } from '../../domain/edge-proxy/edge-proxy.ts';
import { portBusyExitCode } from '../../domain/balancer-link.ts';
import { compareAndSwap } from '../../store/compare-and-swap.ts';
import { type ServiceRecord, subjectEvent } from '../../domain/records.ts';
import { balancerConfig } from './balancer-config.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { serviceDeployment } from '../deploy/deployments.ts';
import { foldersIn } from '../folders-in.ts';
import type { EdgeProxyGroup } from '../edge-proxy/edge-proxy-group.ts';
import { HostedEndpoints } from '../edge-proxy/hosted-endpoints.ts';
import { hostedService } from './hosted-service.ts';
import { Leftovers } from '../leftovers.ts';
import type { RecentCrashes } from './process-crashes.ts';
import { termConfig } from '../leadership/lease-source.ts';
import { endAt, Supervisor, type ProcessEnd, type Supervised } from './supervisor.ts';
import { serviceFiles, type ServiceFiles } from '../deploy/service-files.ts';
import { keptTlsFolder, withOwnTlsFiles } from '../deploy/uploads.ts';

const endGraceMs = 2_000;
/** How long removing the buckets of a gone service may delay the daemon. */
const bucketsTimeoutMs = 20_000;

type Kind = 'balancer' | 'reconciler';

/** Recent crashes of one process of a service. */
export interface ProcessCrash extends RecentCrashes {
  readonly process: Kind;
}

const isUp = ({ balancer, reconciler }: Processes): boolean =>
  reconciler.identity !== undefined && (balancer === undefined || balancer.identity !== undefined);

interface Processes {
  readonly reconciler: Supervisor;
  /** Undefined where edge proxies serve the endpoints. */
  readonly balancer: Supervisor | undefined;
}

/** The processes of each service while it exists: one reconciler and, unless edge proxies serve it, one balancer. */
export class ServiceProcesses {
  readonly #context: DaemonContext;
  readonly #files: ServiceFiles;
  /** By key, not by name: a service deployed again under a name is another one. */
  readonly #all = new Map<string, Processes>();
  /** Services whose processes are being started: two callers must not start them twice. */
  readonly #starting = new Map<string, Promise<void>>();
  /** By service key: the version for which its balancer was configured. */
  readonly #configured = new Map<string, number>();
  readonly #failing = new Map<string, Set<Kind>>();
  /** Per service: settles when the last change of its processes is recorded. */
  readonly #recording = new Map<string, Promise<void>>();
  /** Keys of services that are gone but still have buckets that could not be removed. */
  readonly #kept = new Set<string>();
  /** Services of another database: their processes and files stay until a user removes them. */
  readonly leftovers: Leftovers;
  readonly #proxies: EdgeProxyGroup | undefined;
  readonly #endpoints: HostedEndpoints | undefined;
  /** The current spec of each service, for the edge proxies. */
  readonly #specs = new Map<string, { readonly version: number; readonly spec: ServiceSpec }>();

  constructor(context: DaemonContext, proxies?: EdgeProxyGroup) {
    this.#context = context;
    this.#files = serviceFiles(context.store);
    this.leftovers = new Leftovers(context);
    this.#proxies = proxies;
    const { store, clock } = context;
    const hasOtherFailure = (key: string): boolean => (this.#failing.get(key)?.size ?? 0) > 0;
    if (proxies !== undefined) this.#endpoints = new HostedEndpoints({ store, clock, proxies, hasOtherFailure });
  }

  /** Starts or adopts the processes of a service. Once they are supervised, only renews the balancer for a new version. */
  async ensure(service: ServiceRecord): Promise<void> {
    const { key } = service;
    while (this.#starting.has(key)) await this.#starting.get(key);
    const work = this.#all.has(key) ? this.#renewBalancer(service) : this.#begin(service);
    const starting = work.finally(() => this.#starting.delete(key));
    this.#starting.set(key, starting);
    await starting;
  }

  /** A new version of the service may need a balancer with another configuration. */
  async #renewBalancer(service: ServiceRecord): Promise<void> {
    // A record may have been read before an update.
    if ((this.#configured.get(service.key) ?? 0) >= service.version) return;
    if (this.#proxies === undefined) {
      const config = await this.#writeBalancerConfig(service);
      if (config === undefined) return;
      this.#all.get(service.key)?.balancer?.renew({ version: codeVersion(), config });
    }
    this.#configured.set(service.key, service.version);
  }

  async #begin(service: ServiceRecord): Promise<void> {
    const config = this.#proxies === undefined ? await this.#writeBalancerConfig(service) : undefined;
    if (config !== undefined) this.#configured.set(service.key, service.version);
    const version = codeVersion();
    const { term } = this.#context;
    const files = servicePaths(this.#context.paths, service.key);
    const { balancerSocket, balancerLog, reconcilerSocket, reconcilerLog } = files;
    const balancer = (): Supervisor =>
      this.#supervise(service, 'balancer', {
        argv: [programEntry('balancer/main'), files.balancerConfig],
        socketPath: balancerSocket,
        logFile: balancerLog,
        desired: config === undefined ? { version } : { version, config },
        renewal: 'hand-over',
      });
    this.#all.set(service.key, {
      balancer: this.#proxies === undefined ? balancer() : undefined,
      reconciler: this.#supervise(service, 'reconciler', {
        argv: [programEntry('controller/service/main'), service.name, service.key, ...(term === undefined ? [] : [String(term)])],
        socketPath: reconcilerSocket,
        logFile: reconcilerLog,
        desired: { version, ...(term === undefined ? {} : { config: termConfig(term) }) },
        renewal: 'restart',
      }),
    });
  }

  /**
   * Sends all recorded services to the edge proxies, if any. A service with unreadable files keeps its last
   * configuration. Records which services no edge proxy serves.
   */
  async updateEdgeProxies(): Promise<void> {
    if (this.#proxies === undefined) return;
    const { store, paths, log } = this.#context;
    const services = await store.services.list();
    const hosted = services.map(async (service): Promise<ProxiedService> => {
      try {
        const spec = await this.#spec(service);
        if (spec !== undefined) return await hostedService(service, spec, servicePaths(paths, service.key));
      } catch (error) {
        log.error({ err: error, service: service.name }, 'the edge proxies could not be notified of a service');
      }
      return { key: service.key, config: null, tls: null };
    });
    this.#proxies.serve(await Promise.all(hosted));
    for (const key of (await this.#endpoints?.checkAll(services)) ?? []) this.wake(key);
  }

  /** Whether the service's reconciler keeps crashing and cannot do its work. */
  cannotReconcile(key: string): boolean {
    return this.#failing.get(key)?.has('reconciler') === true;
  }

  /** Versions never change, so each is read once. */
  async #spec({ key, name, version }: ServiceRecord): Promise<ServiceSpec | undefined> {
    const known = this.#specs.get(key);
    if (known?.version === version) return known.spec;
    const recorded = (await this.#context.store.services.version(name, version))?.task.service;
    if (recorded === undefined) return undefined;
    const { dir } = servicePaths(this.#context.paths, key);
    const folder = keptTlsFolder(recorded, dir);
    if (folder !== undefined) await this.#files.restore(key, folder, join(dir, folder));
    const spec = withOwnTlsFiles(recorded, dir);
    this.#specs.set(key, { version, spec });
    return spec;
  }

  /** Undefined where endpoints are served on this machine. */
  get edgeProxies(): EdgeProxyGroup | undefined {
    return this.#proxies;
  }

  /** Hints that the service's records changed. */
  wake(key: string): void {
    this.#all.get(key)?.reconciler.send('wake');
  }

  identities(key: string): { readonly reconciler: ProcessIdentity | undefined; readonly balancer: ProcessIdentity | undefined } {
    const processes = this.#all.get(key);
    return { reconciler: processes?.reconciler.identity, balancer: processes?.balancer?.identity };
  }

  /** Whether the balancer on this machine does not serve with the settings of the service's version yet. */
  isHandingOver({ key, version }: ServiceRecord): boolean {
    if (this.#proxies !== undefined) return false;
    return (this.#configured.get(key) ?? 0) < version || this.#all.get(key)?.balancer?.isRenewing !== false;
  }

  crashes(key: string): readonly ProcessCrash[] {
    const processes = this.#all.get(key);
    return (['reconciler', 'balancer'] as const).flatMap((kind) => {
      const recent = processes?.[kind]?.recentCrashes;
      return recent === undefined ? [] : [{ process: kind, ...recent }];
    });
  }

  /** Settles when the balancer listens, when it found its port taken, or after `timeoutMs`. */
  async balancerStart(key: string, timeoutMs: number): Promise<'listening' | 'port-busy' | 'slow'> {
    const deadline = this.#context.clock.monotonic() + timeoutMs;
    if (this.#proxies !== undefined) await this.updateEdgeProxies();
    while (this.#context.clock.monotonic() < deadline) {
      const hosted = this.#proxies?.at(key).flatMap(({ state }) => state ?? []) ?? [];
      if (hosted.includes('port-busy')) return 'port-busy';
      if (hosted.length > 0 && hosted.every((state) => state === 'listening')) return 'listening';
      const balancer = this.#all.get(key)?.balancer;
      if (balancer?.identity !== undefined) return 'listening';
      if (balancer?.lastExitCode === portBusyExitCode) return 'port-busy';
      await this.#context.clock.sleep(10);
    }
    return 'slow';
  }

  /** Settles when both processes of every service have sent their hello, or after `timeoutMs`. */
  async allUp(timeoutMs: number): Promise<void> {
    const deadline = this.#context.clock.monotonic() + timeoutMs;
    while (this.#context.clock.monotonic() < deadline && ![...this.#all.values()].every(isUp)) await this.#context.clock.sleep(10);
  }

  /** Ends the processes of removed services and deletes their files, also when only an earlier daemon knew them. */
  async removeGone(): Promise<void> {
    const { paths, store, creating } = this.#context;
    // Folders first, without services being deployed: the record of each folder, if any, exists before the records are
    // read. A service being deployed may be recorded during that read and be missing from its result.
    const found = [...this.#all.keys(), ...foldersIn(paths.servicesDir)].filter((key) => !creating.has(key));
    const living = new Set((await store.services.list()).map((service) => service.key));
    const gone = [...new Set(found)].filter((key) => !living.has(key) && !this.#kept.has(key));
    await Promise.all(gone.map(async (key) => ((await this.leftovers.claims('service', key)) ? undefined : this.#removeOrLater(key))));
  }

  /** A failure for one service must not stop the removal of others; the next pass retries. */
  async #removeOrLater(key: string): Promise<void> {
    try {
      await this.remove(key);
    } catch (error) {
      this.#context.log.error({ err: error, key }, 'a service that is gone could not be cleared away');
    }
  }

  /** Ends the processes of a service and deletes its files, as far as its buckets can be removed. */
  async remove(key: string): Promise<void> {
    const files = servicePaths(this.#context.paths, key);
    const processes = this.#all.get(key);
    const how = { clock: this.#context.clock, greetMs: endGraceMs, graceMs: endGraceMs };
    await Promise.all([
      processes === undefined
        ? endAt(files.reconcilerSocket, { ...how, identityFile: files.reconcilerIdentity })
        : processes.reconciler.end(endGraceMs),
      processes === undefined ? endAt(files.balancerSocket, how) : processes.balancer?.end(endGraceMs),
    ]);
    for (const path of [files.balancerSocket, files.reconcilerSocket, files.metricsSocket])
      await rm(path, { recursive: true, force: true });
    if (await this.#removeBuckets(key)) {
      await this.#files.remove(key);
      await rm(files.dir, { recursive: true, force: true });
    }
    this.#all.delete(key);
    this.#failing.delete(key);
    this.#recording.delete(key);
    this.#endpoints?.forget(key);
    this.#specs.delete(key);
    this.#configured.delete(key);
  }

  /** Returns false when a bucket is left: the folder that names it then stays, and the next daemon retries. */
  async #removeBuckets(key: string): Promise<boolean> {
    const deployment = serviceDeployment(servicePaths(this.#context.paths, key).dir, { ...this.#context, name: key, key });
    const late = new AbortController();
    const cancel = this.#context.clock.after(bucketsTimeoutMs, () => late.abort());
    try {
      await deployment.remove(late.signal);
      return true;
    } catch (error) {
      this.#kept.add(key);
      this.#context.log.warn({ err: error, key }, 'a bucket of a service that is gone could not be removed');
      return false;
    } finally {
      cancel();
    }
  }

  /** Kills all reconcilers at once: they may not act any more. The records lead to everything that they started. */
  killReconcilers(): void {
    for (const { reconciler } of this.#all.values()) reconciler.kill();
  }

  /** Stops supervising all processes; they keep running. */
  async release(): Promise<void> {
    const supervisors = [...this.#all.values()].flatMap(({ reconciler, balancer }) =>
      balancer === undefined ? [reconciler] : [reconciler, balancer],
    );
    await Promise.all(supervisors.map((one) => one.release()));
    this.#all.clear();
  }

  #supervise(service: ServiceRecord, kind: Kind, what: Omit<Supervised, 'name' | 'known'>): Supervisor {
    const { clock, log } = this.#context;
    const write = (isFailing: boolean, identity: ProcessIdentity | null, end: ProcessEnd = 'died'): void => {
      const failing = this.#failing.get(service.key) ?? new Set<Kind>();
      this.#failing.set(service.key, failing);
      if (isFailing) failing.add(kind);
      else if (identity !== null) failing.delete(kind);
      const processesFailed = failing.size > 0 || this.#endpoints?.isFailing(service.key) === true;
      // In order of occurrence: a late write of a death must not overwrite a process that is up again.
      const recorded = (this.#recording.get(service.key) ?? Promise.resolve())
        .then(() => this.#recordProcess(service, kind, processesFailed, identity, end))
        .catch((error: unknown) => log.error({ err: error, service: service.name }, 'cannot note a process'));
      this.#recording.set(service.key, recorded);
    };
    const shouldRun = async (): Promise<boolean> => (await this.#context.store.services.get(service.name, service.key)) !== undefined;
    return new Supervisor(
      { ...what, name: `${kind} of ${service.name}`, known: service[kind] },
      {
        clock,
        log,
        shouldRun,
        onUp: (identity) => write(false, identity),
        onDown: (isFailing, end) => write(isFailing, null, end),
      },
    );
  }

  async #recordProcess(
    service: ServiceRecord,
    kind: Kind,
    failing: boolean,
    identity: ProcessIdentity | null,
    end: ProcessEnd,
  ): Promise<void> {
    const { store, clock } = this.#context;
    const update = (now: ServiceRecord): Promise<ServiceRecord | undefined> | undefined => {
      const known = now[kind];
      // A service being terminated loses its reconciler in the end. That is no crash to report.
      const expected = now.desired === 'down' && identity === null;
      if (expected || (known?.pid === identity?.pid && known?.startTicks === identity?.startTicks && now.processesFailed === failing))
        return undefined;
      const how = end === 'hung' ? 'did not answer any more and was ended' : 'died';
      const message =
        identity === null
          ? `The ${kind} ${how}${failing ? ' again and again' : ''}; it is started again.`
          : `The ${kind} runs (process ${identity.pid}).`;
      const event = subjectEvent(now, { at: clock.now(), cause: `${kind}-${identity === null ? end : 'up'}`, message });
      const state = failing ? { state: 'CONTROLLER_FAILED' as const, reason: this.#whyFailing(service, kind) } : {};
      return store.services.update(now, { [kind]: identity, processesFailed: failing, ...state }, event);
    };
    const recorded = await compareAndSwap(() => store.services.get(service.name, service.key), update);
    if (recorded !== undefined) this.wake(service.key);
  }

  #whyFailing(service: ServiceRecord, kind: Kind): string {
    const isPortBusy = kind === 'balancer' && this.#all.get(service.key)?.balancer?.lastExitCode === portBusyExitCode;
    const files = servicePaths(this.#context.paths, service.key);
    if (isPortBusy) return `Port ${service.port} of its endpoint is in use by another program; it is tried again.`;
    return `Its ${kind} keeps dying; it is started again. Log: ${kind === 'balancer' ? files.balancerLog : files.reconcilerLog}`;
  }

  /** Returns the fingerprint of the configuration: it identifies what a balancer was started with. */
  async #writeBalancerConfig(service: ServiceRecord): Promise<string | undefined> {
    const files = servicePaths(this.#context.paths, service.key);
    const spec = (await this.#context.store.services.version(service.name, service.version))?.task.service;
    if (spec === undefined) return undefined;
    const text = `${JSON.stringify(balancerConfig(service, spec, files, availableParallelism()), undefined, 2)}\n`;
    const present = readIfThere(files.balancerConfig);
    try {
      if (present !== text) writeFileAtomic(files.balancerConfig, text);
    } catch (error) {
      if (present === '' || !hasErrno(error, 'ENOSPC', 'EDQUOT')) throw error;
      // The balancer keeps its configuration. Even on a full disk, a service needs a reconciler, which can remove it.
      this.#context.log.error({ err: error, service: service.name }, 'the configuration of a balancer could not be written');
      return undefined;
    }
    return fingerprint(text);
  }
}
