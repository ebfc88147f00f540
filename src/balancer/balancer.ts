import type { BalancerCommand, BalancerConfig, BalancerReplica, BalancerReport } from '../domain/balancer-link.ts';
import type { Clock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import type { Random } from '../shared/random.ts';
import { AccessLog } from './access-log.ts';
import type { BalancerContext, RequestCounters, SuspectReason } from './balancer-context.ts';
import { ControlServer } from './control-server.ts';
import { Deadlines } from './deadlines.ts';
import { LastReplicas } from './last-replicas.ts';
import { Listener } from './listener.ts';
import { createPolicy } from './policy/registry.ts';
import { ReplicaSet } from './replica-set.ts';
import { createRequestIds } from './request-ids.ts';
import { RetryBudget } from './retry-budget.ts';
import { StatsPacer } from './stats-report.ts';
import { WaitingRoom } from './waiting-room.ts';

const statsEveryMs = 250;
const suspectEveryMs = 1_000;

/** What the balancer needs from outside. */
export interface BalancerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** The whole data plane of one service: the endpoint, its replicas, and the link to the reconciler. */
export class Balancer {
  readonly #config: BalancerConfig;
  readonly #deps: BalancerDeps;
  readonly #replicas: ReplicaSet;
  readonly #waitingRoom: WaitingRoom;
  readonly #lastReplicas: LastReplicas;
  readonly #accessLog: AccessLog;
  readonly #listener: Listener;
  readonly #control: ControlServer;
  readonly #counters: RequestCounters = { requests: 0, errors: 0, isDraining: false };
  readonly #pacer = new StatsPacer();
  readonly #suspectedAt = new Map<number, number>();
  readonly #startedAt: number;
  #port = 0;
  #epoch: string | undefined;
  #revision = Number.NEGATIVE_INFINITY;

  constructor(config: BalancerConfig, deps: BalancerDeps) {
    const { clock, random, logger } = deps;
    this.#config = config;
    this.#deps = deps;
    this.#startedAt = clock.now();
    const deadlines = new Deadlines(clock);
    const crashed = (error: unknown): void => logger.error({ err: error }, 'Unexpected error on one connection');
    this.#replicas = new ReplicaSet(createPolicy(config.policy), random, { clock, deadlines, crashed });
    this.#waitingRoom = new WaitingRoom(deadlines, config.queue.timeoutMs);
    this.#lastReplicas = new LastReplicas(config.lastReplicasFile);
    this.#accessLog = new AccessLog({ path: config.accessLog, clock, onError: (message) => logger.error(message) });
    const context: BalancerContext = {
      config,
      clock,
      deadlines,
      replicas: this.#replicas,
      retryBudget: new RetryBudget(),
      waitingRoom: this.#waitingRoom,
      counters: this.#counters,
      newRequestId: createRequestIds(),
      log: (record) => this.#accessLog.add(record),
      suspect: (replicaId, reason) => this.#suspect(replicaId, reason),
      crashed,
    };
    this.#listener = new Listener(context);
    this.#control = new ControlServer(config.controlSocket, {
      greet: () => ({ type: 'hello', pid: process.pid, port: this.#port, startedAt: this.#startedAt }),
      execute: (command) => this.#execute(command),
      onBadLine: (line) => logger.warn({ characters: line.length }, 'Not a command'),
    });
  }

  /** Serves the last good replica set at once, then takes commands. Resolves with the port; rejects with EADDRINUSE when it is taken. */
  async start(): Promise<number> {
    const { logger, clock } = this.#deps;
    const last = this.#lastReplicas.load();
    if (last === undefined)
      logger.warn({ file: this.#config.lastReplicasFile }, 'The last replica set cannot be read; waiting for a new one');
    this.#apply(last ?? []);
    this.#port = await this.#listener.listen();
    await this.#control.listen();
    clock.every(statsEveryMs, () => this.#reportStats());
    const { service, host } = this.#config;
    logger.info({ service, host, port: this.#port, replicas: last?.length ?? 0 }, 'Listening');
    return this.#port;
  }

  /** Takes no more requests, lets those under way end for `graceMs` at most, and writes out what waits. */
  async stop(graceMs: number): Promise<void> {
    await this.#listener.drain(graceMs);
    this.#reportStats();
    this.#control.close();
    await this.#accessLog.close();
  }

  #execute({ epoch, revision, replicas }: BalancerCommand): BalancerReport | undefined {
    if (epoch === this.#epoch && revision < this.#revision) return undefined;
    this.#epoch = epoch;
    this.#revision = revision;
    this.#apply(replicas);
    this.#save(replicas);
    return { type: 'applied', epoch, revision };
  }

  #apply(replicas: readonly BalancerReplica[]): void {
    this.#replicas.apply(replicas);
    this.#waitingRoom.replicasChanged(this.#replicas.hasServing);
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
    if (!this.#control.hasClients) return;
    const { clock } = this.#deps;
    const stats = {
      type: 'stats',
      at: clock.now(),
      requestsTotal: this.#counters.requests,
      errorsTotal: this.#counters.errors,
      inFlight: this.#replicas.inFlight(),
      queued: this.#waitingRoom.size,
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
