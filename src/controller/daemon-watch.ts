import { existsSync } from 'node:fs';
import type { Loop } from '../shared/loop.ts';
import type { ServiceRecord } from '../store/records.ts';
import type { Clusters } from './cluster/clusters.ts';
import type { DaemonContext } from './daemon-context.ts';
import { idleStopMs, nextIdle, type IdleState } from './idle-stop.ts';
import type { ServiceProcesses } from './service-processes.ts';
import { subjectEvent } from './subject-event.ts';
import { removeOldUploads } from './uploads.ts';

/** How often the daemon looks whether services came or went, ms. */
const lookEveryMs = 250;

/** How often old files of clients are removed, in passes: each ten minutes. */
const passesPerCleanUp = 2_400;

/** The daemon's own loop: processes for what exists, none for what is gone, and an end when nothing is left to do. */
export class DaemonWatch implements Loop {
  readonly name = 'watch';
  readonly everyMs = lookEveryMs;
  readonly #context: DaemonContext;
  readonly #processes: ServiceProcesses;
  readonly #clusters: Clusters;
  readonly #idleMinutes: number | undefined;
  readonly #stop: () => void;
  #idle: IdleState = { since: null };
  #busy = 0;
  #wasReachable = false;
  #passes = 0;

  /** `idleMinutes`: undefined never stops. */
  constructor(context: DaemonContext, processes: ServiceProcesses, clusters: Clusters, idleMinutes: number | undefined, stop: () => void) {
    this.#context = context;
    this.#processes = processes;
    this.#clusters = clusters;
    this.#idleMinutes = idleMinutes;
    this.#stop = stop;
  }

  /** Nothing needs the daemon. */
  get isIdle(): boolean {
    return this.#idle.since !== null;
  }

  /** ms until it stops by itself; null while it is needed or when it never does. */
  idleStopMs(): number | null {
    return idleStopMs(this.#idle, this.#idleMinutes, this.#context.clock.monotonic());
  }

  /** Runs work, such as a big copy before a service is recorded, during which the daemon must not stop by itself. */
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
    for (const service of services) await this.#lookAfter(service);
    await this.#processes.removeGone();
    await this.#processes.tellHosts();
    if (this.#passes % passesPerCleanUp === 0) await removeOldUploads(this.#context.paths, clock.now());
    this.#passes += 1;
    const isNeeded = services.length > 0 || this.#busy > 0 || this.#clusters.size > 0 || (await store.clusters.list()).length > 0;
    this.#idle = nextIdle(this.#idle, isNeeded, clock.monotonic());
    if (this.idleStopMs() === 0 || this.#isCutOff()) this.#stop();
  }

  /** The way to us was removed, by a cleaner of temporary files perhaps: the next command starts another daemon, which takes everything over. */
  #isCutOff(): boolean {
    const isThere = existsSync(this.#context.paths.controllerSocket);
    this.#wasReachable ||= isThere;
    return this.#wasReachable && !isThere;
  }

  /** What is wrong with one service must not keep the others from being looked after. */
  async #lookAfter(service: ServiceRecord): Promise<void> {
    const { store, clock, log } = this.#context;
    try {
      // By force, and its reconciler cannot do it.
      if (service.desired === 'down' && service.purge && this.#processes.cannotReconcile(service.key)) {
        const message = 'Its records were removed by force; machines of its replicas may still exist.';
        const event = subjectEvent(service, { at: clock.now(), from: service.state, cause: 'down', message });
        await store.services.remove(service.name, service.key, event);
      } else await this.#processes.ensure(service);
    } catch (error) {
      log.error({ err: error, service: service.name }, 'a service could not be looked after');
    }
  }
}
