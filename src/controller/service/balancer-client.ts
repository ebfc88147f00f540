import { connect, type Socket } from 'node:net';
import type { ReplicasCommand, BalancerReport } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import type { RotationSink } from './rotation.ts';

/** Pause before connecting again after the link broke, ms: a balancer restarts within a few hundred. */
const reconnectMs = 50;

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
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #listeners: BalancerListeners;
  #socket: Socket | undefined;
  #newest: ReplicasCommand | undefined;
  #appliedRevision = 0;
  #waiting: { readonly revision: number; readonly resolve: (applied: boolean) => void }[] = [];
  #startedAt: number | undefined;
  /** Undefined until the first report after our own start: what arrived before is nothing new. */
  #lastTotal: number | undefined;
  #view: BalancerView = { connected: false, inFlight: {}, queued: 0, reports: 0, hellos: 0 };

  constructor(path: string, clock: Clock, log: Logger, listeners: BalancerListeners) {
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
    this.#listeners = listeners;
  }

  get view(): BalancerView {
    return this.#view;
  }

  /** Keeps the link up until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#connection(signal);
      this.#view = { ...this.#view, connected: false, inFlight: {}, queued: 0 };
      await this.#clock.sleep(reconnectMs, signal);
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
    const socket = connect(this.#path);
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const abort = (): void => {
      socket.destroy();
    };
    signal.addEventListener('abort', abort);
    socket.once('connect', () => {
      this.#socket = socket;
      this.#appliedRevision = 0;
      if (this.#newest !== undefined) this.send(this.#newest);
    });
    socket.on(
      'data',
      splitLines((line) => this.#receive(line)),
    );
    // Refused, missing and broken links all end in `close`, after which it is tried again.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#socket = undefined;
      close();
    });
    await closed;
    signal.removeEventListener('abort', abort);
  }

  #receive(line: string): void {
    let report: BalancerReport;
    try {
      report = JSON.parse(line);
    } catch {
      this.#log.warn({ line: line.slice(0, 200) }, 'the balancer sent a line that is not JSON');
      return;
    }
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
