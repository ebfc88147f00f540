import type { BalancerCommand, BalancerReplica, BalancerReport, ReplicasCommand } from '../domain/balancer-link.ts';
import type { Clock } from '../shared/clock.ts';
import { codeVersion } from '../shared/code-version.ts';
import { messageOf } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import type { SuspectReason } from './exchange/balancer-context.ts';
import { Board } from './board/board.ts';
import type { LoadedConfig } from './control/config-file.ts';
import { connectionLimit, openFilesLimit } from './threads/connection-limit.ts';
import { ControlServer, type Tell } from './control/control-server.ts';
import { Following } from './hand-over/following.ts';
import { LastReplicas } from './control/last-replicas.ts';
import { checkPortIsFree } from './threads/listening-socket.ts';
import { claimPort } from './threads/port-claim.ts';
import { BalancerMetrics, type BalancerMoment } from './metrics/balancer-metrics.ts';
import { Predecessors } from './hand-over/predecessors.ts';
import type { PlacedReplica } from './replicas/replica.ts';
import { Slots } from './board/slots.ts';
import { StallWatch } from './replicas/stall-watch.ts';
import { StatsPacer } from './control/stats-report.ts';
import { startSuccessor, tellPredecessor, type Inherited } from './hand-over/successor.ts';
import { Threads } from './threads/threads.ts';
import { TrafficTotals } from './board/traffic-totals.ts';

/** How often the reconciler is told of counts, if they changed, ms; `domain/balancer-link.ts` promises it. */
const statsEveryMs = 250;
/** How often silent replicas are looked for, ms. */
const lookEveryMs = 250;
/** A suspicion leads to a probe at once; while that is under way, more of the same is no news. */
const suspectEveryMs = 1_000;
const bytesPerKibibyte = 1_024;
/** How long a successor may take until it serves: it has to read its code from a disk that may be busy. */
const successorMs = 30_000;
/** How long streams may go on in a process that has handed over. */
const leaveMs = 900_000;

/** What the balancer needs from outside. */
export interface BalancerDeps {
  /** Where its config is, for a successor to read anew. */
  readonly configPath: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A set that was asked for and is not yet in force in all threads. */
interface Pending {
  readonly number: number;
  readonly command: ReplicasCommand;
  /** Monotonic ms. */
  readonly since: number;
  readonly tell: Tell;
}

/**
 * The balancer of one service, on the main thread: the threads that serve the endpoint, what they share, and the link to the reconciler. Requests
 * never come here, so that it answers whatever the load is.
 */
export class Balancer {
  readonly #loaded: LoadedConfig;
  readonly #deps: BalancerDeps;
  readonly #board: Board;
  readonly #slots: Slots;
  readonly #totals: TrafficTotals;
  readonly #stallWatch: StallWatch;
  readonly #lastReplicas: LastReplicas;
  readonly #control: ControlServer;
  readonly #metrics: BalancerMetrics;
  readonly #pacer = new StatsPacer();
  readonly #suspectedAt = new Map<number, number>();
  readonly #startedAt: number;
  readonly #version = codeVersion();
  #threads: Threads | undefined;
  #predecessors: Predecessors;
  #pending: readonly Pending[] = [];
  #port = 0;
  #newest: ReplicasCommand | undefined;
  #setNumber = 0;
  #placed: readonly PlacedReplica[] = [];
  /** `starting`: a successor is coming up. `left`: it serves, and we finish what we have. */
  #handOver: 'none' | 'starting' | 'left' = 'none';
  #following: Following | undefined;
  /** The process is to end: it takes no successor. */
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();

  constructor(loaded: LoadedConfig, deps: BalancerDeps) {
    const { config } = loaded;
    this.#loaded = loaded;
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#predecessors = new Predecessors(0, deps.clock.monotonic());
    this.#board = Board.create(config.threads);
    this.#slots = new Slots(this.#board);
    this.#totals = new TrafficTotals(this.#board);
    this.#stallWatch = new StallWatch(this.#board);
    this.#metrics = new BalancerMetrics({
      config,
      clock: deps.clock,
      logger: deps.logger,
      startedAt: this.#startedAt,
      moment: () => this.#moment(),
    });
    this.#lastReplicas = new LastReplicas(config.lastReplicasFile);
    this.#control = new ControlServer(config.controlSocket, {
      greet: () => this.#hello(),
      execute: (command, tell) => this.#execute(command, tell),
      onGone: (tell) => this.#predecessors.forget(tell),
      onBadLine: (line) => deps.logger.warn({ characters: line.length }, 'Not a command'),
    });
  }

  /**
   * Serves the last good replica set at once, then takes commands. `inherited`: from the process whose place it takes, which goes on serving until
   * this one does. Resolves with the port; rejects with EADDRINUSE when it is taken.
   */
  async start(inherited: Inherited | undefined): Promise<number> {
    const { logger, clock } = this.#deps;
    const { config } = this.#loaded;
    const last = this.#lastReplicas.load();
    if (last === undefined) logger.warn({ file: config.lastReplicasFile }, 'The last replica set cannot be read; waiting for a new one');
    // Sharing the port is for our own threads: anybody else's is a mistake that must be seen.
    const isNew = inherited === undefined && config.port !== 0;
    const release = isNew ? await claimPort(config.port) : () => undefined;
    if (isNew) await checkPortIsFree(config.host, config.port);
    const isKnown = last !== undefined && last !== 'none';
    const first = { type: 'replicas', number: this.#setNumber, replicas: this.#place(isKnown ? last : []), isKnown } as const;
    const maxConnections = connectionLimit(config.maxConnections, openFilesLimit(), config.threads);
    this.#threads = new Threads(
      {
        config,
        board: this.#board,
        metrics: this.#metrics.memory,
        maxConnections,
        clock,
        logger,
        onSuspect: (replicaId, reason) => this.#suspect(replicaId, reason),
        onApplied: () => this.#onApplied(),
      },
      first,
    );
    this.#port = await this.#threads.start(inherited?.fds ?? []);
    release();
    if (config.port !== 0 && this.#port !== config.port)
      throw new Error(`The inherited sockets are of port ${this.#port}, not ${config.port}`);
    this.#predecessors = new Predecessors(inherited?.predecessors ?? 0, clock.monotonic());
    await this.#control.listen(inherited !== undefined);
    tellPredecessor();
    void this.#metrics.start();
    clock.every(statsEveryMs, () => this.#reportStats());
    clock.every(lookEveryMs, () => this.#lookForSilent());
    const { service, host, threads } = config;
    logger.info({ service, host, port: this.#port, threads, maxConnections, replicas: this.#placed.length }, 'Listening');
    return this.#port;
  }

  /** Takes no more requests, lets those under way end for `graceMs` at most, and writes out what waits. */
  async stop(graceMs: number): Promise<void> {
    // A successor that is coming up is known to nobody but us: it would be left behind.
    this.#stopping.abort();
    this.#metrics.close();
    await this.#threads?.stop(graceMs);
    this.#reportStats();
    this.#following?.stop();
    this.#control.close();
  }

  /** Settles when the process has handed over and has nothing left to do; never, otherwise. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  #hello(): BalancerReport {
    const { pid } = process;
    return {
      type: 'hello',
      pid,
      port: this.#port,
      startedAt: this.#startedAt,
      version: this.#version,
      config: this.#loaded.fingerprint,
    };
  }

  #execute(command: BalancerCommand, tell: Tell): void {
    switch (command.type) {
      case 'replicas':
        this.#setReplicas(command, tell);
        break;
      case 'hand-over':
        void this.#startHandOver();
        break;
      case 'remaining':
        this.#predecessors.note(tell, command, this.#newest);
        this.#onApplied();
        break;
    }
  }

  #setReplicas(command: ReplicasCommand, tell: Tell): void {
    const { epoch, revision, replicas } = command;
    if (epoch === this.#newest?.epoch && revision < this.#newest.revision) return;
    this.#newest = command;
    this.#setNumber += 1;
    const placed = this.#place(replicas);
    if (placed.length < replicas.length) this.#deps.logger.error({ replicas: replicas.length, used: placed.length }, 'Too many replicas');
    this.#pending = [...this.#pending, { number: this.#setNumber, command, since: this.#deps.clock.monotonic(), tell }];
    this.#threads?.apply({ type: 'replicas', number: this.#setNumber, replicas: placed, isKnown: true });
    this.#predecessors.send(command);
    if (this.#handOver !== 'left') this.#save(replicas);
    // Should no thread live at this moment, nobody will confirm it.
    this.#onApplied();
  }

  #place(replicas: readonly BalancerReplica[]): readonly PlacedReplica[] {
    const placed = this.#slots.place(replicas);
    this.#metrics.setReplicas(placed);
    this.#placed = placed;
    return placed;
  }

  /** What holds now, for the metrics; requests that a predecessor still has are in it. */
  #moment(): BalancerMoment {
    return {
      inFlight: this.#predecessors.addInFlight(this.#slots.inFlight()),
      queueLength: this.#board.sumOfThreads('queued'),
      queueBytes: this.#board.sumOfThreads('queuedKibibytes') * bytesPerKibibyte,
      clientConnections: this.#board.sumOfThreads('connections'),
      threads: this.#threads?.living ?? 0,
    };
  }

  #onApplied(): void {
    const inThreads = this.#threads?.appliedByAll ?? Number.NEGATIVE_INFINITY;
    const now = this.#deps.clock.monotonic();
    // A successor that is coming up serves the set that it found on disk: the reconciler will send it this one, and hear from it.
    const isInForce = ({ number, command, since }: Pending): boolean =>
      number <= inThreads && this.#predecessors.haveApplied(command, since, now) && this.#handOver !== 'starting';
    const done = this.#pending.filter(isInForce);
    this.#pending = this.#pending.filter((pending) => !done.includes(pending));
    for (const { command, tell } of done) tell({ type: 'applied', epoch: command.epoch, revision: command.revision });
    if (done.length > 0) this.#following?.say();
  }

  async #startHandOver(): Promise<void> {
    const { clock, logger, configPath } = this.#deps;
    const fds = this.#threads?.fds ?? [];
    if (this.#handOver !== 'none' || this.#threads === undefined || this.#stopping.signal.aborted) return;
    this.#handOver = 'starting';
    try {
      if (fds.length === 0) throw new Error('No thread serves at this moment.');
      const predecessors = this.#predecessors.count + 1;
      const pid = await startSuccessor({ configPath, fds, predecessors }, clock, successorMs, this.#stopping.signal);
      logger.info({ successor: pid }, 'Another process serves from now on; connections that are open may end');
    } catch (error) {
      this.#handOver = 'none';
      logger.error(`No other process could take over, so this one goes on: ${messageOf(error)}`);
      this.#onApplied();
      return;
    }
    await this.#leave(this.#threads);
  }

  async #leave(threads: Threads): Promise<void> {
    this.#handOver = 'left';
    this.#metrics.close();
    const { clock } = this.#deps;
    const before = this.#totals.read();
    this.#reportStats();
    this.#control.close();
    this.#following = new Following({
      controlSocket: this.#loaded.config.controlSocket,
      clock,
      onReplicas: (command) => this.#setReplicas(command, () => undefined),
      remaining: () => {
        const { requests, errors } = this.#totals.read();
        const inFlight = this.#slots.inFlight();
        return { requestsTotal: requests - before.requests, errorsTotal: errors - before.errors, inFlight, applied: this.#applied };
      },
    });
    await threads.leave(leaveMs);
    this.#following.stop();
    this.#ended.resolve();
  }

  /** The newest set, once it is in force in all threads. */
  get #applied(): { readonly epoch: string; readonly revision: number } | null {
    if (this.#newest === undefined || this.#pending.length > 0) return null;
    return { epoch: this.#newest.epoch, revision: this.#newest.revision };
  }

  #save(replicas: readonly BalancerReplica[]): void {
    try {
      this.#lastReplicas.save(replicas);
    } catch (error) {
      // Traffic goes on; only a restart without a reconciler would miss the change.
      this.#deps.logger.error(`The replica set could not be written: ${messageOf(error)}`);
    }
  }

  #reportStats(): void {
    const { clock } = this.#deps;
    const own = this.#totals.read();
    this.#onApplied();
    if (this.#pending.length === 0) this.#slots.release();
    // Until a predecessor has told what it has, a replica could look as if it had nothing under way.
    if (!this.#control.hasClients || !this.#predecessors.isComplete(clock.monotonic())) return;
    const theirs = this.#predecessors.totals;
    const stats = {
      type: 'stats',
      at: clock.now(),
      requestsTotal: own.requests + theirs.requests,
      errorsTotal: own.errors + theirs.errors,
      inFlight: this.#predecessors.addInFlight(this.#slots.inFlight()),
      queued: this.#board.sumOfThreads('queued'),
    } as const;
    if (this.#pacer.isDue(stats, clock.monotonic())) this.#control.broadcast(stats);
  }

  #lookForSilent(): void {
    for (const { id } of this.#stallWatch.look(this.#placed, this.#deps.clock.monotonic())) {
      this.#deps.logger.warn({ replica: id }, 'A replica answers nothing while others do; new requests go elsewhere until it does');
      this.#suspect(id, 'timeout');
    }
  }

  #suspect(replicaId: number, reason: SuspectReason): void {
    const now = this.#deps.clock.monotonic();
    if (now - (this.#suspectedAt.get(replicaId) ?? Number.NEGATIVE_INFINITY) < suspectEveryMs) return;
    this.#suspectedAt.set(replicaId, now);
    this.#control.broadcast({ type: 'suspect', replicaId, reason });
  }
}
