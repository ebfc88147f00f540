import { existsSync } from 'node:fs';
import type { Loop } from '../shared/loop.ts';
import { type ServiceRecord, subjectEvent } from '../domain/records.ts';
import type { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { describeClaim } from './deploy/port-claims.ts';
import { foldersIn } from './folders-in.ts';
import type { ServiceProcesses } from './supervise/service-processes.ts';
import { removeOldUploads } from './deploy/uploads.ts';

/** How often the daemon checks for new and removed services, ms. */
const pollIntervalMs = 250;

/** Passes between removals of old client files and events: ten minutes. */
const passesPerCleanUp = 2_400;

/** How long events of gone services and clusters are kept, ms (30 days), and at most how many. */
const goneEventsMs = 2_592_000_000;
const mostGoneEvents = 20_000;

/** Passes between comparisons of port claims with services when no service came or went: ten seconds. */
const passesPerClaims = 40;

/** The daemon's main loop: starts and ends the processes of services, and stops the daemon when it is idle. */
export class DaemonWatch implements Loop {
  readonly name = 'watch';
  readonly everyMs = pollIntervalMs;
  readonly #context: DaemonContext;
  readonly #processes: ServiceProcesses;
  readonly #clusters: Clusters;
  readonly #idleMinutes: number | undefined;
  readonly #stop: () => void;
  #idle: IdleState = { since: null };
  #busy = 0;
  #wasReachable = false;
  #passes = 0;
  /** Services whose ports were claimed in the last comparison. */
  #claimedFor = '';
  /** Port warnings that this process has already logged. */
  #portWarnings: ReadonlySet<string> = new Set<string>();

  /** `idleMinutes` undefined: the daemon never stops by itself. */
  constructor(context: DaemonContext, processes: ServiceProcesses, clusters: Clusters, idleMinutes: number | undefined, stop: () => void) {
    this.#context = context;
    this.#processes = processes;
    this.#clusters = clusters;
    this.#idleMinutes = idleMinutes;
    this.#stop = stop;
  }

  get isIdle(): boolean {
    return this.#idle.since !== null;
  }

  idleStopMs(): number | null {
    return idleStopMs(this.#idle, this.#idleMinutes, this.#context.clock.monotonic());
  }

  /** Runs work during which the daemon must not stop by itself, such as a large copy before a service is recorded. */
  async whileBusy<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#busy += 1;
    this.#idle = { since: null };
    try {
      return await work();
    } finally {
      this.#busy -= 1;
    }
  }

  async tick(): Promise<void> {
    const { store, clock } = this.#context;
    const services = await store.services.list();
    for (const service of services) await this.#ensureProcesses(service);
    await this.#processes.removeGone();
    await this.#processes.updateEdgeProxies();
    await this.#keepPorts(services.map(({ key }) => key).join());
    if (this.#passes % passesPerCleanUp === 0) await this.#cleanUp();
    this.#passes += 1;
    const isNeeded =
      services.length > 0 ||
      this.#processes.leftovers.keys.size > 0 ||
      this.#busy > 0 ||
      this.#clusters.size > 0 ||
      (await store.clusters.list()).length > 0;
    this.#idle = nextIdle(this.#idle, isNeeded, clock.monotonic());
    if (this.idleStopMs() === 0 || this.#isCutOff()) this.#stop();
  }

  async #cleanUp(): Promise<void> {
    const { store, paths, clock, log } = this.#context;
    await removeOldUploads(paths, clock.now());
    // Without its events, a folder that waits for its removal would count as one of another database.
    const except = [...foldersIn(paths.servicesDir), ...foldersIn(paths.clustersDir)];
    try {
      await store.events.pruneGone({ before: clock.now() - goneEventsMs, keep: mostGoneEvents, except });
    } catch (error) {
      // The next clean-up tries again; services must not wait for it.
      log.warn({ err: error }, 'old events could not be removed');
    }
  }

  /**
   * Keeps the port claims of this home equal to its services, recorded or being deployed. Reads claims before services:
   * otherwise it would release the claim of a service created between the reads.
   */
  async #keepPorts(keys: string): Promise<void> {
    const { ports, store, creating, controllerHost, log } = this.#context;
    // Services missing from this database serve until a user removes them.
    const { keys: unknown } = this.#processes.leftovers;
    if (controllerHost?.balancers !== undefined || (keys === this.#claimedFor && this.#passes % passesPerClaims !== 0)) return;
    this.#claimedFor = keys;
    const found = ports.own().filter(({ key }) => !creating.has(key) && !unknown.has(key));
    const services = await store.services.list();
    const living = new Set(services.map(({ key }) => key));
    const conflicts = ports.keep(
      services,
      found.filter(({ key }) => !living.has(key)),
    );
    const contested = conflicts.map((claim) => `Port ${claim.port} belongs to ${describeClaim(claim)} as well.`);
    const current = [...contested, ...ports.problems.values()];
    for (const message of current) if (!this.#portWarnings.has(message)) log.warn(message);
    this.#portWarnings = new Set(current);
  }

  /** Whether the socket was removed, as by a cleaner. The daemon of the next command takes over all processes. */
  #isCutOff(): boolean {
    const exists = existsSync(this.#context.paths.controllerSocket);
    this.#wasReachable ||= exists;
    return this.#wasReachable && !exists;
  }

  /** A failure in one service must not stop the supervision of the others. */
  async #ensureProcesses(service: ServiceRecord): Promise<void> {
    const { store, clock, log } = this.#context;
    try {
      // `down --purge` of a service whose reconciler keeps crashing: the daemon removes the service itself.
      if (service.desired === 'down' && service.purge && this.#processes.cannotReconcile(service.key)) {
        const message = 'Its records were removed by force; machines of its replicas may still exist.';
        const event = subjectEvent(service, { at: clock.now(), from: service.state, cause: 'down', message });
        await store.services.remove(service.name, service.key, event);
      } else await this.#processes.ensure(service);
    } catch (error) {
      log.error({ err: error, service: service.name }, 'could not supervise a service');
    }
  }
}

interface IdleState {
  /** Since when the daemon is idle, monotonic ms; null while it is busy. */
  readonly since: number | null;
}

/** Next idle state, given whether services or clusters exist. Pure. */
export function nextIdle(state: IdleState, busy: boolean, now: number): IdleState {
  if (busy) return { since: null };
  return { since: state.since ?? now };
}

/** Least idle time, ms, also with `idleMinutes` 0: the client that started the daemon is about to send a command. */
const leastIdleMs = 20_000;

/** ms until the daemon stops; null while it is busy or when it never stops. */
export function idleStopMs(state: IdleState, idleMinutes: number | undefined, now: number): number | null {
  if (state.since === null || idleMinutes === undefined) return null;
  return Math.max(0, state.since + Math.max(leastIdleMs, idleMinutes * 60_000) - now);
}
