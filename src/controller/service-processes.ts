import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { BalancerConfig } from '../domain/balancer-link.ts';
import { writeFileAtomic } from '../shared/atomic-file.ts';
import { servicePaths } from '../shared/paths.ts';
import type { ProcessIdentity } from '../shared/process-identity.ts';
import type { ServiceRecord } from '../store/records.ts';
import { isSnapshotPending } from './create-service.ts';
import type { DaemonContext } from './daemon-context.ts';
import { Supervisor } from './supervisor.ts';

const balancerMain = fileURLToPath(new URL('../balancer/main.ts', import.meta.url));
const reconcilerMain = fileURLToPath(new URL('service/main.ts', import.meta.url));

/** How long a balancer may finish what it has when its service is gone, ms: the replicas, and so all requests, ended before. */
const balancerGraceMs = 2_000;

/** How long a request waits when the last replica is lost, ms: a replacement on a machine that is there takes a second or a few. */
const replicaWaitMs = 10_000;

/** What `Retry-After` says while nothing is ready, s. */
const retryAfterSeconds = 5;

interface Processes {
  readonly key: string;
  readonly reconciler: Supervisor;
  readonly balancer: Supervisor;
}

/** The process group of each service: one reconciler and one balancer, kept running for as long as the service exists. */
export class ServiceProcesses {
  readonly #context: DaemonContext;
  readonly #all = new Map<string, Processes>();
  /** Services whose processes are just being started, by key: two callers must not start them twice. */
  readonly #starting = new Map<string, Promise<void>>();

  constructor(context: DaemonContext) {
    this.#context = context;
  }

  /** Starts, or takes over, the processes of a service; does nothing when they are already looked after. */
  async ensure(service: ServiceRecord): Promise<void> {
    if (this.#all.get(service.name)?.key === service.key || isSnapshotPending(this.#context.paths, service.key)) return;
    const starting = this.#starting.get(service.key) ?? this.#begin(service).finally(() => this.#starting.delete(service.key));
    this.#starting.set(service.key, starting);
    await starting;
  }

  async #begin(service: ServiceRecord): Promise<void> {
    await this.#writeBalancerConfig(service);
    const files = servicePaths(this.#context.paths, service.name, service.key);
    const balancer = this.#supervise(service, 'balancer', [balancerMain, files.balancerConfig], files.balancerSocket, files.balancerLog);
    const reconciler = this.#supervise(
      service,
      'reconciler',
      [reconcilerMain, service.name, service.key],
      files.reconcilerSocket,
      files.reconcilerLog,
    );
    this.#all.set(service.name, { key: service.key, balancer, reconciler });
  }

  /** Hints that the service's records changed. */
  wake(name: string): void {
    this.#all.get(name)?.reconciler.tell('wake');
  }

  /** Living processes of a service. */
  identities(name: string): { readonly reconciler: ProcessIdentity | undefined; readonly balancer: ProcessIdentity | undefined } {
    const processes = this.#all.get(name);
    return { reconciler: processes?.reconciler.identity, balancer: processes?.balancer.identity };
  }

  /** Settles when the balancer listens, or after `timeoutMs`. */
  async balancerUp(name: string, timeoutMs: number): Promise<boolean> {
    const deadline = this.#context.clock.monotonic() + timeoutMs;
    while (this.#context.clock.monotonic() < deadline) {
      if (this.#all.get(name)?.balancer.identity !== undefined) return true;
      await this.#context.clock.sleep(10);
    }
    return false;
  }

  /** Ends the processes of services that are gone and removes their files. */
  async removeGone(services: readonly ServiceRecord[]): Promise<void> {
    for (const [name, processes] of this.#all) {
      if (services.some((service) => service.name === name && service.key === processes.key)) continue;
      this.#all.delete(name);
      await Promise.all([processes.reconciler.end(balancerGraceMs), processes.balancer.end(balancerGraceMs)]);
      const files = servicePaths(this.#context.paths, name, processes.key);
      await rm(files.balancerSocket, { force: true });
      await rm(files.reconcilerSocket, { force: true });
      if (!services.some((service) => service.name === name)) await rm(files.dir, { recursive: true, force: true });
    }
  }

  /** Lets go of all processes; they go on. */
  async release(): Promise<void> {
    await Promise.all([...this.#all.values()].flatMap(({ reconciler, balancer }) => [reconciler.release(), balancer.release()]));
    this.#all.clear();
  }

  #supervise(
    service: ServiceRecord,
    kind: 'balancer' | 'reconciler',
    argv: readonly string[],
    socketPath: string,
    logFile: string,
  ): Supervisor {
    const { clock, log } = this.#context;
    const write = (processesFailed: boolean, identity: ProcessIdentity | null): void => {
      void this.#note(service, kind, processesFailed, identity).catch((error: unknown) =>
        log.error({ err: error, service: service.name }, 'cannot note a process'),
      );
    };
    const isWanted = async (): Promise<boolean> => (await this.#context.store.services.get(service.name))?.key === service.key;
    return new Supervisor(
      { name: `${kind} of ${service.name}`, argv, socketPath, logFile },
      { clock, log, isWanted, onUp: (identity) => write(false, identity), onDown: (failing) => write(failing, null) },
    );
  }

  /** Records a process's coming and going, with a line in the history. */
  async #note(service: ServiceRecord, kind: 'balancer' | 'reconciler', failing: boolean, identity: ProcessIdentity | null): Promise<void> {
    const { store, clock } = this.#context;
    for (;;) {
      const now = await store.services.get(service.name);
      if (now === undefined || now.key !== service.key) return;
      const known = now[kind];
      // A service that is being taken down loses its reconciler in the end; that is no death to tell of.
      const expected = now.desired === 'down' && identity === null;
      if (expected || (known?.pid === identity?.pid && known?.startTicks === identity?.startTicks && now.processesFailed === failing))
        return;
      const message =
        identity === null
          ? `The ${kind} died${failing ? ' again and again' : ''}; it is started again.`
          : `The ${kind} runs (process ${identity.pid}).`;
      const event = {
        at: clock.now(),
        subject: now.name,
        subjectKey: now.key,
        replicaId: null,
        from: null,
        to: null,
        cause: `${kind}-${identity === null ? 'died' : 'up'}`,
        message,
      };
      const state = failing ? { state: 'CONTROLLER_FAILED' as const, reason: `Its ${kind} keeps dying; see its log.` } : {};
      if ((await store.services.update(now, { [kind]: identity, processesFailed: failing, ...state }, event)) !== undefined) break;
    }
    this.wake(service.name);
  }

  async #writeBalancerConfig(service: ServiceRecord): Promise<void> {
    const files = servicePaths(this.#context.paths, service.name, service.key);
    const spec = (await this.#context.store.services.version(service.name, service.version))?.task.service;
    if (spec === undefined) return;
    const config: BalancerConfig = {
      service: service.name,
      host: service.host,
      port: service.port,
      policy: spec.loadBalancingPolicy,
      controlSocket: files.balancerSocket,
      lastReplicasFile: files.lastReplicas,
      accessLog: files.accessLog,
      firstByteTimeoutMs: spec.loadBalancer.firstByteTimeoutSeconds * 1_000,
      idleTimeoutMs: spec.loadBalancer.idleTimeoutSeconds * 1_000,
      maxBodyBytes: spec.loadBalancer.maxBodyBytes ?? null,
      retryUnsafe: spec.loadBalancer.retryUnsafe,
      exposeReplica: spec.loadBalancer.exposeReplica,
      replicaWaitMs,
      retryAfterSeconds,
    };
    writeFileAtomic(files.balancerConfig, `${JSON.stringify(config, undefined, 2)}\n`);
  }
}
