import type { Socket } from 'node:net';
import type { BalancerConfig } from '../../domain/balancer-link.ts';
import { parseAddressRange } from '../../shared/address-range.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { Random } from '../../shared/random.ts';
import { AccessLog } from '../access-log/access-log.ts';
import type { BalancerContext, SuspectReason } from '../exchange/balancer-context.ts';
import type { BoardRow } from '../board/board.ts';
import { ClientConnection } from '../client/client-connection.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { Listener, type ServedConnection } from './listener.ts';
import { ThreadMetrics } from '../metrics/thread-metrics.ts';
import { sampleThread } from '../metrics/thread-sampler.ts';
import { PausedClients } from '../transport/paused-clients.ts';
import { createPolicy } from '../policy/registry.ts';
import { SharedQueueTally } from '../board/queue-tally.ts';
import type { SetOrder } from './thread-messages.ts';
import { ReplicaSet } from '../replicas/replica-set.ts';
import { createRequestIds } from '../exchange/request-ids.ts';
import { RetryBudget } from '../exchange/retry-budget.ts';
import { SharedCounters } from '../board/shared-counters.ts';
import type { Listening } from './thread-messages.ts';
import { NegotiatedConnection } from '../tls/negotiated-connection.ts';
import { TlsTerminator } from '../tls/tls-terminator.ts';
import { WaitingRoom } from '../exchange/waiting-room.ts';

/** What a data plane needs from outside. */
export interface DataPlaneDeps {
  readonly config: BalancerConfig;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Where it counts. */
  readonly row: BoardRow;
  /** Where it counts for the metrics. */
  readonly metricsRow: Float64Array;
  /** Open connections of clients, in all threads. */
  readonly maxConnections: number;
  readonly suspect: (replicaId: number, reason: SuspectReason) => void;
}

/** Everything that serves requests in one thread. What threads must agree on is in the shared memory; all else is its own. */
export class DataPlane {
  readonly #context: BalancerContext;
  readonly #replicas: ReplicaSet;
  readonly #waitingRoom: WaitingRoom;
  readonly #accessLog: AccessLog;
  readonly #listener: Listener;
  readonly #tls: TlsTerminator | undefined;

  constructor({ config, clock, random, logger, row, metricsRow, maxConnections, suspect }: DataPlaneDeps) {
    this.#tls = config.tls === null ? undefined : new TlsTerminator(config.tls, { clock, logger });
    const deadlines = new Deadlines(clock);
    const metrics = new ThreadMetrics(metricsRow);
    sampleThread(metrics, clock);
    const crashed = (error: unknown): void => logger.error({ err: error }, 'Unexpected error on one connection');
    this.#replicas = new ReplicaSet(
      createPolicy(config.policy),
      random,
      { protocol: config.protocol, clock, deadlines, crashed, metrics },
      row,
    );
    const tally = new SharedQueueTally(row);
    this.#waitingRoom = new WaitingRoom({ deadlines, limits: config.queue, tally, threads: row.board.threads });
    this.#accessLog = new AccessLog({
      path: config.accessLog,
      clock,
      rotates: row.thread === 0,
      onError: (message) => logger.error(message),
      onLost: (lines) => metrics.logLinesLost(lines),
    });
    this.#context = {
      config,
      headLimits: { lineBytes: config.maxRequestLineBytes, headBytes: config.maxHeaderBytes, fields: config.maxHeaderCount },
      trustedProxies: config.trustedProxies.flatMap((text) => parseAddressRange(text) ?? []),
      clock,
      deadlines,
      replicas: this.#replicas,
      retryBudget: new RetryBudget(row.board.budget),
      waitingRoom: this.#waitingRoom,
      pausedClients: new PausedClients(deadlines),
      counters: new SharedCounters(row),
      newRequestId: createRequestIds(),
      metrics,
      log: (record) => {
        metrics.requestEnded(record);
        this.#accessLog.add(record);
      },
      suspect,
      crashed,
    };
    this.#listener = new Listener(this.#context, { row, maxConnections, serve: (socket, onClosed) => this.#serve(socket, onClosed) });
  }

  /** Puts a set of replicas in force. */
  apply({ replicas, isKnown }: Pick<SetOrder, 'replicas' | 'isKnown'>): void {
    this.#replicas.apply(replicas);
    if (isKnown) this.#waitingRoom.replicasChanged(this.#replicas.serving);
  }

  /** Accepts from now on. See `Listener.listen`. */
  listen(where: readonly Listening[]): Promise<{ readonly port: number; readonly fds: readonly number[] }> {
    return this.#listener.listen(where);
  }

  /** Takes no more requests, lets those under way end for `graceMs` at most, and writes out what waits. */
  async stop(graceMs: number): Promise<void> {
    await this.#listener.drain(graceMs);
    await this.#accessLog.close();
  }

  /** Accepts no more, as another process does; serves the connections that are open until their clients close them, or for `graceMs`. */
  async leave(graceMs: number): Promise<void> {
    this.#accessLog.leaveRotation();
    await this.#listener.leave(graceMs);
    await this.#accessLog.close();
  }

  #serve(socket: Socket, onClosed: (connection: ServedConnection) => void): ServedConnection {
    // Where only HTTP/1 is spoken nobody looks before the engine does.
    const isPlain = this.#tls === undefined && this.#context.config.protocol !== 'h2c';
    if (isPlain) return new ClientConnection(socket, this.#context, onClosed);
    return new NegotiatedConnection(socket, this.#context, this.#tls, onClosed);
  }
}
