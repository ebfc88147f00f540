import type { BalancerCommand, BalancerReplica, BalancerReport, ReplicasCommand, SuspectReason } from '../domain/balancer-link.ts';
import { outcomesSince } from '../domain/outcomes.ts';
import type { Clock } from '../shared/clock.ts';
import { systemRandom } from '../shared/random.ts';
import { codeVersion } from '../shared/version.ts';
import { messageOf } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { Board } from './board/board.ts';
import type { LoadedConfig } from './control/config-file.ts';
import { fileLimits, openFilesLimit } from './threads/connection-limit.ts';
import { ControlServer, type Notify } from './control/control-server.ts';
import { SuccessorLink } from './hand-over/successor-link.ts';
import { ReplicaSetFile } from './control/replica-set-file.ts';
import { checkPortIsFree } from './threads/listening-socket.ts';
import { claimPort } from './threads/port-claim.ts';
import { BalancerMetrics, type BalancerSnapshot } from './metrics/balancer-metrics.ts';
import { Predecessors } from './hand-over/predecessors.ts';
import type { SlottedReplica } from './replicas/replica.ts';
import { Slots } from './board/slots.ts';
import { StallWatch } from './replicas/stall-watch.ts';
import { StatsPacer } from './control/stats-pacer.ts';
import { Standby } from './hand-over/standby.ts';
import { startSuccessor, notifyPredecessor, type Inherited } from './hand-over/successor.ts';
import { Threads } from './threads/threads.ts';
import { watchTlsFiles, type TlsMaterial } from './tls/tls-files.ts';
import { TrafficTotals } from './board/shared-counters.ts';

/** How often the balancer reports changed counts to the reconciler, ms; `domain/balancer-link.ts` promises it. */
const statsEveryMs = 250;
const stallCheckIntervalMs = 250;
/** A suspicion triggers a probe at once. More suspicions during that probe carry no information. */
const suspectEveryMs = 1_000;
const bytesPerKibibyte = 1_024;
/** How long a successor may take until it serves: it may read its code from a busy disk. */
const successorMs = 30_000;
/** How long streams may continue in a process that has handed over. */
const drainTimeoutMs = 900_000;

interface BalancerDeps {
  /** A successor reads the config from this path again. */
  readonly configPath: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A requested set that is not yet in force in all threads. */
interface Pending {
  readonly number: number;
  readonly command: ReplicasCommand;
  /** Monotonic ms. */
  readonly since: number;
  readonly notify: Notify;
}

/**
 * The balancer of one service, on the main thread. No request runs there, so it answers the reconciler under any load.
 */
export class Balancer {
  readonly #loaded: LoadedConfig;
  readonly #deps: BalancerDeps;
  readonly #board: Board;
  readonly #slots: Slots;
  readonly #totals: TrafficTotals;
  readonly #stallWatch: StallWatch;
  readonly #lastReplicas: ReplicaSetFile;
  readonly #control: ControlServer;
  readonly #metrics: BalancerMetrics;
  readonly #pacer = new StatsPacer();
  readonly #suspectedAt = new Map<number, number>();
  readonly #startedAt: number;
  #version = '';
  #threads: Threads | undefined;
  #predecessors: Predecessors;
  #pending: readonly Pending[] = [];
  #port = 0;
  #newest: ReplicasCommand | undefined;
  #setNumber = 0;
  /** Why the newest TLS files of the endpoint are not in force. */
  #tlsProblem: string | null = null;
  #slotted: readonly SlottedReplica[] = [];
  /** `starting`: a successor is starting. `left`: the successor serves, and this process finishes its open requests. */
  #handOver: 'none' | 'starting' | 'left' = 'none';
  #successorLink: SuccessorLink | undefined;
  /** Follows this process if it is killed. Undefined until this process serves. */
  #standby: Standby | undefined;
  /** Aborted when the process is to end: it then starts no successor. */
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
    this.#stallWatch = new StallWatch(this.#board, systemRandom);
    this.#metrics = new BalancerMetrics({
      config,
      clock: deps.clock,
      logger: deps.logger,
      startedAt: this.#startedAt,
      snapshot: () => this.#snapshot(),
    });
    this.#lastReplicas = new ReplicaSetFile(config.lastReplicasFile);
    this.#control = new ControlServer(config.controlSocket, {
      greet: () => this.#hello(),
      execute: (command, notify) => this.#execute(command, notify),
      onGone: (notify) => this.#predecessors.forget(notify),
      onBadLine: (line) => deps.logger.warn({ characters: line.length }, 'Not a command'),
    });
  }

  /**
   * Serves the last good replica set at once, then takes commands. Resolves with the port; rejects with EADDRINUSE when
   * it is taken. `inherited`: sockets of the predecessor, which serves until this process does.
   */
  async start(inherited: Inherited | undefined): Promise<number> {
    const { logger, clock } = this.#deps;
    const { config } = this.#loaded;
    const tls = this.#readTls();
    const last = this.#lastReplicas.load();
    if (last === undefined) logger.warn({ file: config.lastReplicasFile }, 'The last replica set cannot be read; waiting for a new one');
    // Only the balancer's own threads may share the port. The user must learn of any other process on it.
    const isNew = inherited === undefined && config.port !== 0;
    const release = isNew ? await claimPort(config.port) : () => undefined;
    if (isNew) await checkPortIsFree(config.host, config.port);
    const isKnown = last !== undefined && last !== 'none';
    const first = { type: 'replicas', number: this.#setNumber, replicas: this.#assignSlots(isKnown ? last : []), isKnown } as const;
    const limits = fileLimits(config.maxConnections, openFilesLimit(), config.threads);
    this.#threads = new Threads(
      {
        config,
        board: this.#board,
        metrics: this.#metrics.memory,
        limits,
        tls,
        clock,
        logger,
        onSuspect: (replicaId, reason) => this.#suspect(replicaId, reason),
        // It may have to wake a service without replicas.
        onHeld: () => this.#reportStats(),
        onApplied: () => this.#onApplied(),
        onSockets: () => this.#startStandby(),
      },
      first,
    );
    const listening = this.#threads.start(inherited?.fds ?? []);
    // This takes as long as the threads need to load their code.
    this.#version = codeVersion();
    this.#port = await listening;
    release();
    if (config.port !== 0 && this.#port !== config.port)
      throw new Error(`The inherited sockets are of port ${this.#port}, not ${config.port}`);
    this.#predecessors = new Predecessors(inherited?.predecessors ?? 0, clock.monotonic());
    const fds = (): readonly number[] => this.#threads?.fds ?? [];
    const onStart = (pid: number): void => this.#control.broadcast({ type: 'standby', pid });
    this.#standby = new Standby({ configPath: this.#deps.configPath, fds, clock, logger, onStart });
    // Before the first hello, which names it: a supervisor that kills this process must be able to end it too.
    this.#startStandby();
    try {
      await this.#control.listen(inherited !== undefined);
    } catch (error) {
      this.#standby.end();
      throw error;
    }
    notifyPredecessor();
    void this.#metrics.start();
    clock.every(statsEveryMs, () => this.#reportStats());
    clock.every(stallCheckIntervalMs, () => this.#checkForStalls());
    const { service, host, threads } = config;
    logger.info(
      { service, host, port: this.#port, threads, maxConnections: limits.connections, replicas: this.#slotted.length },
      'Listening',
    );
    return this.#port;
  }

  /** Takes no more requests, lets running requests finish within `graceMs`, and writes out pending output. */
  async stop(graceMs: number): Promise<void> {
    // Only this process knows of a starting successor. Without the abort, the successor would be orphaned.
    this.#stopping.abort();
    this.#standby?.end();
    this.#metrics.close();
    await this.#threads?.stop(graceMs);
    this.#reportStats();
    this.#successorLink?.stop();
    this.#control.close();
  }

  /** Settles when the process has handed over and has no work left; otherwise never. */
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
      ...(this.#standby?.pid === undefined ? {} : { standby: this.#standby.pid }),
      ...(this.#tlsProblem === null ? {} : { tlsProblem: this.#tlsProblem }),
    };
  }

  /** Reads the endpoint's TLS files and follows changes. Throws SVC_BAD_CERTIFICATE when they cannot be served. */
  #readTls(): TlsMaterial | undefined {
    const { clock, logger } = this.#deps;
    const { tls } = this.#loaded.config;
    if (tls === null) return undefined;
    const { material, notInForce } = watchTlsFiles(tls, clock, {
      renewed: (renewed) => {
        this.#threads?.renewTls(renewed);
        logger.info('The new TLS files are in force');
        this.#onTls(null);
      },
      refused: (problem) => {
        logger.error(problem);
        this.#onTls(problem);
      },
    });
    if (notInForce !== undefined) logger.warn(`Clients will refuse the certificate of the endpoint. ${notInForce}`);
    return material;
  }

  #onTls(problem: string | null): void {
    this.#tlsProblem = problem;
    this.#control.broadcast({ type: 'tls', problem });
  }

  #execute(command: BalancerCommand, notify: Notify): void {
    switch (command.type) {
      case 'replicas':
        this.#setReplicas(command, notify);
        break;
      case 'hand-over':
        void this.#startHandOver();
        break;
      case 'remaining':
        this.#predecessors.record(notify, command, this.#newest);
        if (command.outcomes !== undefined) this.#metrics.outcomes.add(command.outcomes);
        this.#onApplied();
        break;
    }
  }

  #setReplicas(command: ReplicasCommand, notify: Notify): void {
    const { epoch, revision, replicas, expected } = command;
    if (epoch === this.#newest?.epoch && revision < this.#newest.revision) return;
    this.#newest = command;
    this.#setNumber += 1;
    const slotted = this.#assignSlots(replicas);
    if (slotted.length < replicas.length) this.#deps.logger.error({ replicas: replicas.length, used: slotted.length }, 'Too many replicas');
    this.#pending = [...this.#pending, { number: this.#setNumber, command, since: this.#deps.clock.monotonic(), notify }];
    this.#threads?.apply({ type: 'replicas', number: this.#setNumber, replicas: slotted, isKnown: true, expected });
    this.#predecessors.send(command);
    if (this.#handOver !== 'left') this.#save(replicas);
    // If no thread is alive now, no thread will confirm the set.
    this.#onApplied();
  }

  #assignSlots(replicas: readonly BalancerReplica[]): readonly SlottedReplica[] {
    const slotted = this.#slots.assign(replicas);
    this.#metrics.setReplicas(slotted);
    this.#slotted = slotted;
    return slotted;
  }

  /** Includes requests that a predecessor still has. */
  #snapshot(): BalancerSnapshot {
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
    // A starting successor serves the set on disk. The reconciler will send it this set, and the successor confirms it.
    const isInForce = ({ number, command, since }: Pending): boolean =>
      number <= inThreads && this.#predecessors.haveApplied(command, since, now) && this.#handOver !== 'starting';
    const done = this.#pending.filter(isInForce);
    this.#pending = this.#pending.filter((pending) => !done.includes(pending));
    for (const { command, notify } of done) notify({ type: 'applied', epoch: command.epoch, revision: command.revision });
    if (done.length > 0) this.#successorLink?.report();
  }

  /** None while this process ends or hands over: its standby would serve beside the successor. */
  #startStandby(): void {
    if (this.#handOver === 'none' && !this.#stopping.signal.aborted) this.#standby?.start();
  }

  async #startHandOver(): Promise<void> {
    const { clock, logger, configPath } = this.#deps;
    const fds = this.#threads?.fds ?? [];
    if (this.#handOver !== 'none' || this.#threads === undefined || this.#stopping.signal.aborted) return;
    this.#handOver = 'starting';
    this.#standby?.end();
    try {
      if (fds.length === 0) throw new Error('No thread serves at this moment.');
      const predecessors = this.#predecessors.count + 1;
      const pid = await startSuccessor({ configPath, fds, predecessors }, clock, successorMs, this.#stopping.signal);
      logger.info({ successor: pid }, 'Another process serves from now on; connections that are open may end');
    } catch (error) {
      this.#handOver = 'none';
      logger.error(`No other process could take over, so this one goes on: ${messageOf(error)}`);
      this.#startStandby();
      this.#onApplied();
      return;
    }
    await this.#drain(this.#threads);
  }

  async #drain(threads: Threads): Promise<void> {
    this.#handOver = 'left';
    this.#metrics.close();
    const { clock } = this.#deps;
    const before = this.#totals.read();
    this.#reportStats();
    const counted = this.#metrics.outcomes.total();
    this.#control.close();
    this.#successorLink = new SuccessorLink({
      controlSocket: this.#loaded.config.controlSocket,
      clock,
      onReplicas: (command) => this.#setReplicas(command, () => undefined),
      remaining: () => {
        const { requests, errors } = this.#totals.read();
        const inFlight = this.#slots.inFlight();
        const totals = { requestsTotal: requests - before.requests, errorsTotal: errors - before.errors };
        return { ...totals, inFlight, outcomes: outcomesSince(counted, this.#metrics.outcomes.total()), applied: this.#applied };
      },
    });
    await threads.handOver(drainTimeoutMs);
    this.#successorLink.stop();
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
      // Traffic continues. The change is lost only if the balancer restarts without a reconciler.
      this.#deps.logger.error(`The replica set could not be written: ${messageOf(error)}`);
    }
  }

  #reportStats(): void {
    const { clock } = this.#deps;
    const own = this.#totals.read();
    this.#onApplied();
    if (this.#pending.length === 0) this.#slots.release();
    // Until each predecessor has reported its requests, a replica could appear to have none in flight.
    if (!this.#control.hasClients || !this.#predecessors.isComplete(clock.monotonic())) return;
    const theirs = this.#predecessors.totals;
    const outcomes = this.#metrics.outcomes.read();
    const broken = this.#stallWatch.broken(this.#slotted, clock.monotonic());
    const stats = {
      type: 'stats',
      at: clock.now(),
      requestsTotal: own.requests + theirs.requests,
      errorsTotal: own.errors + theirs.errors,
      inFlight: this.#predecessors.addInFlight(this.#slots.inFlight()),
      queued: this.#board.sumOfThreads('queued'),
      ...(outcomes !== undefined && { outcomes }),
      ...(broken !== undefined && { broken }),
    } as const;
    if (this.#pacer.isDue(stats, clock.monotonic())) this.#control.broadcast(stats);
  }

  #checkForStalls(): void {
    const { stalled, suspects } = this.#stallWatch.check(this.#slotted, this.#deps.clock.monotonic());
    for (const { id } of stalled)
      this.#deps.logger.warn({ replica: id }, 'A replica answers nothing while others do; new requests go to other replicas until it does');
    for (const { id, reason } of suspects) this.#suspect(id, reason);
  }

  #suspect(replicaId: number, reason: SuspectReason): void {
    const now = this.#deps.clock.monotonic();
    if (now - (this.#suspectedAt.get(replicaId) ?? Number.NEGATIVE_INFINITY) < suspectEveryMs) return;
    this.#suspectedAt.set(replicaId, now);
    this.#control.broadcast({ type: 'suspect', replicaId, reason });
  }
}
