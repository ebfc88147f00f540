import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { BalancerReport, BrokenReplicas, ReplicasCommand, SuspectReason } from '../../domain/balancer-link.ts';
import { addOutcomes, boundOutcomes, outcomesSince, type Outcomes } from '../../domain/outcomes.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import { splitLines } from '../../shared/lines.ts';
import type { Logger } from '../../shared/log.ts';
import type { EndpointSink } from './endpoint-publisher.ts';

/** Delay before reconnecting after the connection broke, ms. A balancer restarts within a few hundred. */
const reconnectMs = 50;

/** Opens a connection to the balancer. Rejects when no balancer listens. */
export type DialBalancer = (signal: AbortSignal) => Promise<Duplex>;

/** Options for a balancer on another machine. */
interface BalancerClientOptions {
  readonly reconnectMs?: number;
  /** After this much silence the connection counts as broken, ms. A balancer reports each second. */
  readonly silentMs?: number;
  readonly onNews?: () => void;
}

/** The balancer's last report. */
export interface BalancerView {
  readonly connected: boolean;
  readonly inFlight: Readonly<Record<string, number>>;
  readonly queued: number;
  /**
   * What became of the requests at each replica, since this object began to listen. Never falls, whatever happens to the
   * balancer, until a replica is one of the oldest of many that left the endpoint set. Counts only while the set has
   * several versions.
   */
  readonly outcomes: Outcomes;
  /** Replicas whose last requests all got no complete response. */
  readonly broken: BrokenReplicas;
  /** Number of stats reports received: a caller can wait for a fresh one. */
  readonly reports: number;
  /** Number of hellos received: from the same balancer again, its successor, or another one. */
  readonly hellos: number;
}

/** Receivers of the balancer's reports. */
export interface BalancerListeners {
  /** `count` requests arrived since the last report; `queued` requests are in the request queue now. */
  arrivals(count: number, queued: number): void;
  suspect(replicaId: number, reason: SuspectReason): void;
  /** `problem`: why the balancer keeps the endpoint's old TLS files; null when it serves with the new ones. */
  tlsChanged(problem: string | null): void;
}

/** The reconciler's end of the connection to a balancer. */
export interface BalancerPort extends EndpointSink {
  readonly view: BalancerView;
  /** Connects and reports to the listeners from now on. Delivers a set that was sent before. */
  open(listeners: BalancerListeners): void;
}

/** The connection to one balancer. Reconnects for ever and sends the newest set after each connect. */
export class BalancerClient implements EndpointSink {
  readonly #dial: DialBalancer;
  readonly #options: BalancerClientOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  #socket: Duplex | undefined;
  #lastSeenAt = Number.NEGATIVE_INFINITY;
  #lastArrivalAt = Number.NEGATIVE_INFINITY;
  #newest: ReplicasCommand | undefined;
  /** Whether the connection has not been given the newest set. */
  #isUnsent = false;
  #appliedRevision = 0;
  #waiting: { readonly revision: number; readonly resolve: (applied: boolean) => void }[] = [];
  #startedAt: number | undefined;
  /** Undefined until the first report after this process started: earlier arrivals are not new. */
  #lastTotal: number | undefined;
  /** The process's last report; undefined until the first one, as above. */
  #lastOutcomes: Outcomes | undefined;
  #tlsProblem: string | null = null;
  #view: BalancerView = { connected: false, inFlight: {}, queued: 0, outcomes: {}, broken: {}, reports: 0, hellos: 0 };

  /** `to`: the path of the balancer's Unix socket, or a function that dials it. */
  constructor(to: string | DialBalancer, clock: Clock, log: Logger, options: BalancerClientOptions = {}) {
    this.#dial = typeof to === 'string' ? () => dialUnix(to) : to;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
  }

  get view(): BalancerView {
    return this.#view;
  }

  /** The newest revision of this process that the balancer has applied. */
  get appliedRevision(): number {
    return this.#appliedRevision;
  }

  /** When the balancer last sent anything, monotonic ms. */
  get lastSeenAt(): number {
    return this.#lastSeenAt;
  }

  /** When requests last arrived, monotonic ms. The first report counts as well: what came before it is not known. */
  get lastArrivalAt(): number {
    return this.#lastArrivalAt;
  }

  /** Keeps the connection open and reports to the listeners until the signal aborts. */
  async run(listeners: BalancerListeners, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#connection(listeners, signal);
      this.#appliedRevision = 0;
      this.#view = { ...this.#view, connected: false, inFlight: {}, queued: 0, broken: {} };
      this.#options.onNews?.();
      await this.#clock.sleep(this.#options.reconnectMs ?? reconnectMs, signal);
    }
  }

  send(command: ReplicasCommand): void {
    this.#newest = command;
    this.#isUnsent = true;
    this.#flush();
  }

  /**
   * Sets of hundreds of replicas can change faster than a balancer reads them. Only the newest waits for its turn, so
   * that the balancer is never busy with outdated ones.
   */
  #flush(): void {
    if (!this.#isUnsent || this.#socket === undefined || this.#socket.writableNeedDrain) return;
    this.#isUnsent = false;
    this.#socket.write(`${JSON.stringify(this.#newest)}\n`);
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

  async #connection(listeners: BalancerListeners, signal: AbortSignal): Promise<void> {
    let socket: Duplex;
    try {
      socket = await this.#dial(signal);
    } catch {
      // Refused or missing: the loop retries.
      return;
    }
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const cut = (): void => {
      socket.destroy();
    };
    signal.addEventListener('abort', cut);
    // A broken connection emits `close`, and the loop retries.
    socket.on('error', () => undefined);
    socket.once('close', close);
    if (signal.aborted) cut();
    const cancelSilence = this.#cutWhenSilent(cut);
    socket.on(
      'data',
      splitLines((line) => this.#receive(line, listeners)),
    );
    socket.on('drain', () => this.#flush());
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
    return this.#clock.every(silentMs / checksPerSilence, () => {
      if (this.#clock.monotonic() - Math.max(openedAt, this.#lastSeenAt) >= silentMs) cut();
    });
  }

  #receive(line: string, listeners: BalancerListeners): void {
    let report: BalancerReport;
    try {
      report = JSON.parse(line);
    } catch {
      this.#log.warn({ line: line.slice(0, 200) }, 'the balancer sent a line that is not JSON');
      return;
    }
    this.#lastSeenAt = this.#clock.monotonic();
    this.#handle(report, listeners);
    this.#options.onNews?.();
  }

  /** The sum with the increments of a report. A report may leave out replicas: their earlier counts stay. */
  #addOutcomes(reported: Outcomes | undefined): Outcomes {
    const { outcomes } = this.#view;
    if (reported === undefined) return outcomes;
    const before = this.#lastOutcomes ?? reported;
    const living = new Set([...idsOf(this.#newest), ...Object.keys(reported)]);
    this.#lastOutcomes = boundOutcomes({ ...before, ...reported }, living);
    return boundOutcomes(addOutcomes(outcomes, outcomesSince(before, reported)), living);
  }

  /** A balancer repeats a problem in each hello. */
  #recordTls(problem: string | null, listeners: BalancerListeners): void {
    if (problem !== null && problem === this.#tlsProblem) return;
    this.#tlsProblem = problem;
    listeners.tlsChanged(problem);
  }

  #handle(report: BalancerReport, listeners: BalancerListeners): void {
    switch (report.type) {
      case 'hello':
        // A restarted balancer counts its requests from zero.
        if (this.#startedAt !== undefined && report.startedAt !== this.#startedAt) {
          this.#lastTotal = 0;
          this.#lastOutcomes = {};
        }
        this.#startedAt = report.startedAt;
        this.#view = { ...this.#view, connected: true, hellos: this.#view.hellos + 1 };
        if (this.#tlsProblem !== null || report.tlsProblem !== undefined) this.#recordTls(report.tlsProblem ?? null, listeners);
        break;
      case 'applied':
        if (report.epoch !== this.#newest?.epoch) break;
        this.#appliedRevision = Math.max(this.#appliedRevision, report.revision);
        for (const waiter of this.#waiting) if (waiter.revision <= report.revision) waiter.resolve(true);
        break;
      case 'stats': {
        const count = Math.max(0, report.requestsTotal - (this.#lastTotal ?? report.requestsTotal));
        if (count > 0 || this.#lastTotal === undefined) this.#lastArrivalAt = this.#clock.monotonic();
        this.#lastTotal = report.requestsTotal;
        const { inFlight, queued, broken = {} } = report;
        const outcomes = this.#addOutcomes(report.outcomes);
        this.#view = { ...this.#view, inFlight, queued, outcomes, broken, reports: this.#view.reports + 1 };
        listeners.arrivals(count, report.queued);
        break;
      }
      case 'tls':
        this.#recordTls(report.problem, listeners);
        break;
      case 'suspect':
        listeners.suspect(report.replicaId, report.reason);
        break;
      case 'standby':
        // The supervisor follows it.
        break;
    }
  }
}

/** Ids of the replicas of an endpoint set. */
export function idsOf(command: ReplicasCommand | undefined): ReadonlySet<string> {
  return new Set((command?.replicas ?? []).map(({ id }) => String(id)));
}

const checksPerSilence = 6;

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
