import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ReplicasCommand, BalancerReport } from '../../domain/balancer-link.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import type { RotationSink } from './rotation.ts';

/** Pause before connecting again after the link broke, ms: a balancer restarts within a few hundred. */
const reconnectMs = 50;

/** Opens the link; rejects when nobody is there. */
export type DialBalancer = (signal: AbortSignal) => Promise<Duplex>;

/** What is different for a balancer on another machine. */
export interface BalancerClientOptions {
  readonly reconnectMs?: number;
  /** A link over which nothing came for so long is taken for broken, ms: it reports each second. */
  readonly silentMs?: number;
  /** Called after each change of what is known of it. */
  readonly onNews?: () => void;
}

/** What the balancer told last. */
export interface BalancerView {
  readonly connected: boolean;
  readonly inFlight: Readonly<Record<string, number>>;
  /** Requests that wait for a replica. */
  readonly queued: number;
  /** Counts reports of figures, so that one can wait for a fresh one. */
  readonly reports: number;
  /** Counts how often a balancer was met: the same one again, its successor, or another one. */
  readonly hellos: number;
}

/** What the reconciler wants to hear. */
export interface BalancerListeners {
  /** Requests that arrived since the last report, and how many wait for a replica now. */
  arrivals(count: number, queued: number): void;
  suspect(replicaId: number, reason: string): void;
}

/** The reconciler's end of the link to its balancer. Connects again for ever; after each connect the newest set is sent. */
export class BalancerClient implements RotationSink {
  readonly #dial: DialBalancer;
  readonly #options: BalancerClientOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #listeners: BalancerListeners;
  #socket: Duplex | undefined;
  #heardAt = Number.NEGATIVE_INFINITY;
  #newest: ReplicasCommand | undefined;
  #appliedRevision = 0;
  #waiting: { readonly revision: number; readonly resolve: (applied: boolean) => void }[] = [];
  #startedAt: number | undefined;
  /** Undefined until the first report after our own start: what arrived before is nothing new. */
  #lastTotal: number | undefined;
  #view: BalancerView = { connected: false, inFlight: {}, queued: 0, reports: 0, hellos: 0 };

  /** `to`: the path of its Unix socket, or how else it is reached. */
  constructor(to: string | DialBalancer, clock: Clock, log: Logger, listeners: BalancerListeners, options: BalancerClientOptions = {}) {
    this.#dial = typeof to === 'string' ? () => dialUnix(to) : to;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#listeners = listeners;
  }

  get view(): BalancerView {
    return this.#view;
  }

  /** The newest revision of ours that is in force there. */
  get appliedRevision(): number {
    return this.#appliedRevision;
  }

  /** When something last came from it (monotonic ms). */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Keeps the link up until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#connection(signal);
      this.#appliedRevision = 0;
      this.#view = { ...this.#view, connected: false, inFlight: {}, queued: 0 };
      this.#options.onNews?.();
      await this.#clock.sleep(this.#options.reconnectMs ?? reconnectMs, signal);
    }
  }

  send(command: ReplicasCommand): void {
    this.#newest = command;
    this.#socket?.write(`${JSON.stringify(command)}\n`);
  }

  async applied(revision: number, timeoutMs: number): Promise<boolean> {
    if (this.#appliedRevision >= revision) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#clock.after(timeoutMs, () => resolve(false));
    const waiter = { revision, resolve };
    this.#waiting.push(waiter);
    const result = await promise;
    cancel();
    this.#waiting = this.#waiting.filter((one) => one !== waiter);
    return result;
  }

  async #connection(signal: AbortSignal): Promise<void> {
    let socket: Duplex;
    try {
      socket = await this.#dial(signal);
    } catch {
      // Refused or missing: it is tried again.
      return;
    }
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const cut = (): void => {
      socket.destroy();
    };
    signal.addEventListener('abort', cut);
    // A broken link ends in `close`, after which it is tried again.
    socket.on('error', () => undefined);
    socket.once('close', close);
    if (signal.aborted) cut();
    const cancelSilence = this.#cutWhenSilent(cut);
    socket.on(
      'data',
      splitLines((line) => this.#receive(line)),
    );
    this.#socket = socket;
    this.#appliedRevision = 0;
    if (this.#newest !== undefined) this.send(this.#newest);
    if (!socket.destroyed) await closed;
    this.#socket = undefined;
    cancelSilence();
    signal.removeEventListener('abort', cut);
  }

  #cutWhenSilent(cut: () => void): CancelTimer {
    const { silentMs } = this.#options;
    if (silentMs === undefined) return () => undefined;
    const openedAt = this.#clock.monotonic();
    return this.#clock.every(silentMs / looksWithinSilence, () => {
      if (this.#clock.monotonic() - Math.max(openedAt, this.#heardAt) >= silentMs) cut();
    });
  }

  #receive(line: string): void {
    let report: BalancerReport;
    try {
      report = JSON.parse(line);
    } catch {
      this.#log.warn({ line: line.slice(0, 200) }, 'the balancer sent a line that is not JSON');
      return;
    }
    this.#heardAt = this.#clock.monotonic();
    this.#take(report);
    this.#options.onNews?.();
  }

  #take(report: BalancerReport): void {
    switch (report.type) {
      case 'hello':
        // Another start of the balancer means another count of requests, from zero.
        if (this.#startedAt !== undefined && report.startedAt !== this.#startedAt) this.#lastTotal = 0;
        this.#startedAt = report.startedAt;
        this.#view = { ...this.#view, connected: true, hellos: this.#view.hellos + 1 };
        break;
      case 'applied':
        if (report.epoch !== this.#newest?.epoch) break;
        this.#appliedRevision = Math.max(this.#appliedRevision, report.revision);
        for (const waiter of this.#waiting) if (waiter.revision <= report.revision) waiter.resolve(true);
        break;
      case 'stats': {
        const count = Math.max(0, report.requestsTotal - (this.#lastTotal ?? report.requestsTotal));
        this.#lastTotal = report.requestsTotal;
        this.#view = { ...this.#view, inFlight: report.inFlight, queued: report.queued, reports: this.#view.reports + 1 };
        this.#listeners.arrivals(count, report.queued);
        break;
      }
      case 'suspect':
        this.#listeners.suspect(report.replicaId, report.reason);
        break;
    }
  }
}

/** How often within the time of silence it is looked whether that is over. */
const looksWithinSilence = 6;

function dialUnix(path: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect(path);
  socket.once('connect', () => {
    socket.off('error', reject);
    resolve(socket);
  });
  socket.once('error', reject);
  return promise;
}
