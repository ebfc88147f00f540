import type { BalancerCommand, BalancerReplica, BalancerReport, ReplicasCommand } from '../domain/balancer-link.ts';
import type { Clock } from '../shared/clock.ts';
import { codeVersion } from '../shared/code-version.ts';
import { messageOf } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import type { SuspectReason } from './balancer-context.ts';
import { Board } from './board.ts';
import type { LoadedConfig } from './config-file.ts';
import { connectionLimit, openFilesLimit } from './connection-limit.ts';
import { ControlServer, type Tell } from './control-server.ts';
import { LastReplicas } from './last-replicas.ts';
import { checkPortIsFree } from './listening-socket.ts';
import { Slots } from './slots.ts';
import { StatsPacer } from './stats-report.ts';
import { Threads } from './threads.ts';
import { TrafficTotals } from './traffic-totals.ts';

const statsEveryMs = 250;
const suspectEveryMs = 1_000;

/** What the balancer needs from outside. */
export interface BalancerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A set that was asked for and is not yet in force in all threads. */
interface Pending {
  readonly number: number;
  readonly onApplied: () => void;
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
  readonly #lastReplicas: LastReplicas;
  readonly #control: ControlServer;
  readonly #pacer = new StatsPacer();
  readonly #suspectedAt = new Map<number, number>();
  readonly #startedAt: number;
  readonly #version = codeVersion();
  #threads: Threads | undefined;
  #pending: readonly Pending[] = [];
  #port = 0;
  #epoch: string | undefined;
  #revision = Number.NEGATIVE_INFINITY;
  #setNumber = 0;

  constructor(loaded: LoadedConfig, deps: BalancerDeps) {
    const { config } = loaded;
    this.#loaded = loaded;
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    this.#board = Board.create(config.threads);
    this.#slots = new Slots(this.#board);
    this.#totals = new TrafficTotals(this.#board);
    this.#lastReplicas = new LastReplicas(config.lastReplicasFile);
    this.#control = new ControlServer(config.controlSocket, {
      greet: () => this.#hello(),
      execute: (command, tell) => this.#execute(command, tell),
      onGone: () => undefined,
      onBadLine: (line) => deps.logger.warn({ characters: line.length }, 'Not a command'),
    });
  }

  /** Serves the last good replica set at once, then takes commands. Resolves with the port; rejects with EADDRINUSE when it is taken. */
  async start(): Promise<number> {
    const { logger, clock } = this.#deps;
    const { config } = this.#loaded;
    const last = this.#lastReplicas.load();
    if (last === undefined) logger.warn({ file: config.lastReplicasFile }, 'The last replica set cannot be read; waiting for a new one');
    // Sharing the port is for our own threads: anybody else's is a mistake that must be seen.
    if (config.port !== 0) await checkPortIsFree(config.host, config.port);
    const first = { type: 'replicas', number: this.#setNumber, replicas: this.#slots.place(last ?? []) } as const;
    const maxConnections = connectionLimit(config.maxConnections, openFilesLimit(), config.threads);
    this.#threads = new Threads(
      {
        config,
        board: this.#board,
        maxConnections,
        clock,
        logger,
        onSuspect: (replicaId, reason) => this.#suspect(replicaId, reason),
        onApplied: () => this.#onApplied(),
      },
      first,
    );
    this.#port = await this.#threads.start([]);
    await this.#control.listen(false);
    clock.every(statsEveryMs, () => this.#reportStats());
    const { service, host, threads } = config;
    logger.info({ service, host, port: this.#port, threads, maxConnections, replicas: last?.length ?? 0 }, 'Listening');
    return this.#port;
  }

  /** Takes no more requests, lets those under way end for `graceMs` at most, and writes out what waits. */
  async stop(graceMs: number): Promise<void> {
    await this.#threads?.stop(graceMs);
    this.#reportStats();
    this.#control.close();
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
    this.#setReplicas(command, tell);
  }

  #setReplicas({ epoch, revision, replicas }: ReplicasCommand, tell: Tell): void {
    if (epoch === this.#epoch && revision < this.#revision) return;
    this.#epoch = epoch;
    this.#revision = revision;
    this.#setNumber += 1;
    const placed = this.#slots.place(replicas);
    if (placed.length < replicas.length) this.#deps.logger.error({ replicas: replicas.length, used: placed.length }, 'Too many replicas');
    this.#pending = [...this.#pending, { number: this.#setNumber, onApplied: () => tell({ type: 'applied', epoch, revision }) }];
    this.#threads?.apply({ type: 'replicas', number: this.#setNumber, replicas: placed });
    this.#save(replicas);
    // Should no thread live at this moment, nobody will confirm it.
    this.#onApplied();
  }

  #onApplied(): void {
    const applied = this.#threads?.appliedByAll ?? Number.NEGATIVE_INFINITY;
    const done = this.#pending.filter(({ number }) => number <= applied);
    this.#pending = this.#pending.filter(({ number }) => number > applied);
    for (const { onApplied } of done) onApplied();
    if (this.#pending.length === 0) this.#slots.release();
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
    const { requests, errors } = this.#totals.read();
    if (this.#pending.length === 0) this.#slots.release();
    if (!this.#control.hasClients) return;
    const { clock } = this.#deps;
    const stats = {
      type: 'stats',
      at: clock.now(),
      requestsTotal: requests,
      errorsTotal: errors,
      inFlight: this.#slots.inFlight(),
      queued: this.#board.sumOfThreads('queued'),
    } as const;
    if (this.#pacer.isDue(stats, clock.monotonic())) this.#control.broadcast(stats);
  }

  #suspect(replicaId: number, reason: SuspectReason): void {
    const now = this.#deps.clock.monotonic();
    if (now - (this.#suspectedAt.get(replicaId) ?? Number.NEGATIVE_INFINITY) < suspectEveryMs) return;
    this.#suspectedAt.set(replicaId, now);
    this.#control.broadcast({ type: 'suspect', replicaId, reason });
  }
}
