import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { ServiceSpec } from '../domain/task.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { codeVersion } from '../shared/code-version.ts';
import { programEntry } from '../shared/program-files.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import { servicePaths } from '../shared/paths.ts';
import type { ProcessIdentity } from '../shared/process-identity.ts';
import type { HostedService } from '../domain/balancer-host.ts';
import { portBusyExitCode } from '../domain/balancer-link.ts';
import type { ServiceRecord } from '../store/records.ts';
import { balancerConfig } from './balancer-config.ts';
import type { DaemonContext } from './daemon-context.ts';
import { serviceDeployment } from './deployments.ts';
import { foldersIn } from './folders-in.ts';
import type { HostGroup } from './balancer-host/host-group.ts';
import { HostedEndpoints } from './balancer-host/hosted-endpoints.ts';
import { greet } from './greeting.ts';
import { hostedService } from './hosted-service.ts';
import { termConfig } from './leadership/term-config.ts';
import { endProcess, Supervisor, type ProcessEnd, type Supervised } from './supervisor.ts';
import { serviceFiles, type ServiceFiles } from './service-files.ts';
import { subjectEvent } from './subject-event.ts';
import { withOwnTlsFiles } from './uploads.ts';

/** How long a process may finish what it has when its service is gone, ms. */
const endGraceMs = 2_000;
/** How long the buckets of a service that is gone may hold the daemon up. */
const bucketsTimeoutMs = 20_000;

type Kind = 'balancer' | 'reconciler';

/** Whether both have been heard of. */
const isUp = ({ balancer, reconciler }: Processes): boolean =>
  reconciler.identity !== undefined && (balancer === undefined || balancer.identity !== undefined);

interface Processes {
  readonly reconciler: Supervisor;
  /** Undefined where endpoints are served by balancer hosts. */
  readonly balancer: Supervisor | undefined;
}

/** The process group of each service: one reconciler and, unless balancer hosts serve it, one balancer, kept running for as long as the service exists. */
export class ServiceProcesses {
  readonly #context: DaemonContext;
  readonly #files: ServiceFiles;
  /** By key: a service put up again under a name is another one. */
  readonly #all = new Map<string, Processes>();
  /** Services whose processes are just being started: two callers must not start them twice. */
  readonly #starting = new Map<string, Promise<void>>();
  readonly #failing = new Map<string, Set<Kind>>();
  /** Settles, for each service, when what was last to be recorded of its processes is. */
  readonly #noted = new Map<string, Promise<void>>();
  /** Keys of services that are gone, but for buckets that could not be removed. */
  readonly #kept = new Set<string>();
  readonly #hosts: HostGroup | undefined;
  readonly #endpoints: HostedEndpoints | undefined;
  /** What each service is to be served as, for the balancer hosts. */
  readonly #specs = new Map<string, { readonly version: number; readonly spec: ServiceSpec }>();

  constructor(context: DaemonContext, hosts?: HostGroup) {
    this.#context = context;
    this.#files = serviceFiles(context.store);
    this.#hosts = hosts;
    const { store, clock } = context;
    const hasOtherFailure = (key: string): boolean => (this.#failing.get(key)?.size ?? 0) > 0;
    if (hosts !== undefined) this.#endpoints = new HostedEndpoints({ store, clock, hosts, hasOtherFailure });
  }

  /** Starts, or takes over, the processes of a service; does nothing when they are already looked after. */
  async ensure(service: ServiceRecord): Promise<void> {
    if (this.#all.has(service.key)) return;
    const starting = this.#starting.get(service.key) ?? this.#begin(service).finally(() => this.#starting.delete(service.key));
    this.#starting.set(service.key, starting);
    await starting;
  }

  async #begin(service: ServiceRecord): Promise<void> {
    const config = this.#hosts === undefined ? await this.#writeBalancerConfig(service) : undefined;
    const version = codeVersion();
    const { term } = this.#context;
    const files = servicePaths(this.#context.paths, service.key);
    const { balancerSocket, balancerLog, reconcilerSocket, reconcilerLog } = files;
    const balancer = (): Supervisor =>
      this.#supervise(service, 'balancer', {
        argv: [programEntry('balancer/main'), files.balancerConfig],
        socketPath: balancerSocket,
        logFile: balancerLog,
        wanted: config === undefined ? { version } : { version, config },
        renewal: 'hand-over',
      });
    this.#all.set(service.key, {
      balancer: this.#hosts === undefined ? balancer() : undefined,
      reconciler: this.#supervise(service, 'reconciler', {
        argv: [programEntry('controller/service/main'), service.name, service.key, ...(term === undefined ? [] : [String(term)])],
        socketPath: reconcilerSocket,
        logFile: reconcilerLog,
        wanted: { version, ...(term === undefined ? {} : { config: termConfig(term) }) },
        renewal: 'restart',
      }),
    });
  }

  /**
   * Tells the balancer hosts, where there are any, what to serve: every service that is recorded. One whose files cannot be read just now goes on as it
   * is served. Records which of them none of the hosts serves.
   */
  async tellHosts(): Promise<void> {
    if (this.#hosts === undefined) return;
    const { store, paths, log } = this.#context;
    const services = await store.services.list();
    const hosted = services.map(async (service): Promise<HostedService> => {
      try {
        const spec = await this.#spec(service);
        if (spec !== undefined) return await hostedService(service, spec, servicePaths(paths, service.key));
      } catch (error) {
        log.error({ err: error, service: service.name }, 'the balancer hosts cannot be told of a service');
      }
      return { key: service.key, config: null, tls: null };
    });
    this.#hosts.serve(await Promise.all(hosted));
    for (const key of (await this.#endpoints?.look(services)) ?? []) this.wake(key);
  }

  /** Whether its reconciler keeps dying, so that it cannot do what is asked of it. */
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
    await this.#files.restore(key, 'tls', join(dir, 'tls'));
    const spec = withOwnTlsFiles(recorded, dir);
    this.#specs.set(key, { version, spec });
    return spec;
  }

  /** The balancer hosts; undefined where endpoints are served on this machine. */
  get hosts(): HostGroup | undefined {
    return this.#hosts;
  }

  /** Hints that the service's records changed. */
  wake(key: string): void {
    this.#all.get(key)?.reconciler.tell('wake');
  }

  /** Living processes of a service. */
  identities(key: string): { readonly reconciler: ProcessIdentity | undefined; readonly balancer: ProcessIdentity | undefined } {
    const processes = this.#all.get(key);
    return { reconciler: processes?.reconciler.identity, balancer: processes?.balancer?.identity };
  }

  /** Settles when the balancer listens, has found its port taken, or after `timeoutMs`. */
  async balancerStart(key: string, timeoutMs: number): Promise<'listening' | 'port-busy' | 'slow'> {
    const deadline = this.#context.clock.monotonic() + timeoutMs;
    if (this.#hosts !== undefined) await this.tellHosts();
    while (this.#context.clock.monotonic() < deadline) {
      const hosted = this.#hosts?.at(key).flatMap(({ state }) => state ?? []) ?? [];
      if (hosted.includes('port-busy')) return 'port-busy';
      if (hosted.length > 0 && hosted.every((state) => state === 'listening')) return 'listening';
      const balancer = this.#all.get(key)?.balancer;
      if (balancer?.identity !== undefined) return 'listening';
      if (balancer?.lastExitCode === portBusyExitCode) return 'port-busy';
      await this.#context.clock.sleep(10);
    }
    return 'slow';
  }

  /** Settles when both processes of every service have been heard of, or after `timeoutMs`. */
  async allUp(timeoutMs: number): Promise<void> {
    const deadline = this.#context.clock.monotonic() + timeoutMs;
    while (this.#context.clock.monotonic() < deadline && ![...this.#all.values()].every(isUp)) await this.#context.clock.sleep(10);
  }

  /** Ends the processes of services that are gone, and removes their files; also of those that only an earlier daemon knew. */
  async removeGone(): Promise<void> {
    const { paths, store, creating } = this.#context;
    // First the folders, without those of services that are being put up: any other is recorded by the time the records are read, if it ever is. One that is
    // being put up now may be recorded while they are read, and not be among them.
    const found = [...this.#all.keys(), ...foldersIn(paths.servicesDir)].filter((key) => !creating.has(key));
    const living = new Set((await store.services.list()).map((service) => service.key));
    const gone = [...new Set(found)].filter((key) => !living.has(key) && !this.#kept.has(key));
    await Promise.all(gone.map((key) => this.#removeOrLater(key)));
  }

  /** What is wrong with one must not keep the others; the next look tries again. */
  async #removeOrLater(key: string): Promise<void> {
    try {
      await this.#remove(key);
    } catch (error) {
      this.#context.log.error({ err: error, key }, 'a service that is gone could not be cleared away');
    }
  }

  async #remove(key: string): Promise<void> {
    const files = servicePaths(this.#context.paths, key);
    const processes = this.#all.get(key);
    await Promise.all([
      processes === undefined ? this.#endUnknown(files.reconcilerSocket) : processes.reconciler.end(endGraceMs),
      processes === undefined ? this.#endUnknown(files.balancerSocket) : processes.balancer?.end(endGraceMs),
    ]);
    for (const path of [files.balancerSocket, files.reconcilerSocket, files.metricsSocket])
      await rm(path, { recursive: true, force: true });
    if (await this.#removeBuckets(key)) {
      await this.#files.remove(key);
      await rm(files.dir, { recursive: true, force: true });
    }
    this.#all.delete(key);
    this.#failing.delete(key);
    this.#noted.delete(key);
    this.#endpoints?.forget(key);
    this.#specs.delete(key);
  }

  /** Of a service that was dropped by force. While one is left, the folder that names it stays, and the next daemon tries again. */
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

  async #endUnknown(socketPath: string): Promise<void> {
    const greeting = await greet(socketPath, { clock: this.#context.clock, timeoutMs: endGraceMs });
    if (greeting === undefined) return;
    await endProcess(greeting.identity, endGraceMs, this.#context.clock);
    greeting.socket.destroy();
  }

  /** Ends all reconcilers at once and without a word: they may not act any more. What they began is found again in the records. */
  killReconcilers(): void {
    for (const { reconciler } of this.#all.values()) reconciler.kill();
  }

  /** Lets go of all processes; they go on. */
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
      // In the order in which it happened: a death that is written late must not be the last word on a process that is up again.
      const noted = (this.#noted.get(service.key) ?? Promise.resolve())
        .then(() => this.#note(service, kind, processesFailed, identity, end))
        .catch((error: unknown) => log.error({ err: error, service: service.name }, 'cannot note a process'));
      this.#noted.set(service.key, noted);
    };
    const isWanted = async (): Promise<boolean> => (await this.#context.store.services.get(service.name))?.key === service.key;
    return new Supervisor(
      { ...what, name: `${kind} of ${service.name}`, known: service[kind] },
      { clock, log, isWanted, onUp: (identity) => write(false, identity), onDown: (isFailing, end) => write(isFailing, null, end) },
    );
  }

  /** Records a process's coming and going, with a line in the history. */
  async #note(service: ServiceRecord, kind: Kind, failing: boolean, identity: ProcessIdentity | null, end: ProcessEnd): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const now = await store.services.get(service.name);
      if (now === undefined || now.key !== service.key) return;
      const known = now[kind];
      // A service that is being taken down loses its reconciler in the end; that is no death to tell of.
      const expected = now.desired === 'down' && identity === null;
      if (expected || (known?.pid === identity?.pid && known?.startTicks === identity?.startTicks && now.processesFailed === failing))
        return;
      const how = end === 'hung' ? 'did not answer any more and was ended' : 'died';
      const message =
        identity === null
          ? `The ${kind} ${how}${failing ? ' again and again' : ''}; it is started again.`
          : `The ${kind} runs (process ${identity.pid}).`;
      const event = subjectEvent(now, { at: clock.now(), cause: `${kind}-${identity === null ? end : 'up'}`, message });
      const state = failing ? { state: 'CONTROLLER_FAILED' as const, reason: this.#whyFailing(service, kind) } : {};
      if ((await store.services.update(now, { [kind]: identity, processesFailed: failing, ...state }, event)) !== undefined) break;
    }
    this.wake(service.key);
  }

  #whyFailing(service: ServiceRecord, kind: Kind): string {
    const isPortBusy = kind === 'balancer' && this.#all.get(service.key)?.balancer?.lastExitCode === portBusyExitCode;
    const files = servicePaths(this.#context.paths, service.key);
    if (isPortBusy) return `Port ${service.port} of its endpoint is in use by another program; it is tried again.`;
    return `Its ${kind} keeps dying; it is started again. Log: ${kind === 'balancer' ? files.balancerLog : files.reconcilerLog}`;
  }

  /** What the balancer is to be started with; gives back the fingerprint by which one tells what it was started with. */
  async #writeBalancerConfig(service: ServiceRecord): Promise<string | undefined> {
    const files = servicePaths(this.#context.paths, service.key);
    const spec = (await this.#context.store.services.version(service.name, service.version))?.task.service;
    if (spec === undefined) return undefined;
    const text = `${JSON.stringify(balancerConfig(service, spec, files, availableParallelism()), undefined, 2)}\n`;
    writeFileAtomic(files.balancerConfig, text);
    return fingerprint(text);
  }
}
