import type { Socket } from 'node:net';
import type { BalancerConfig, SuspectReason } from '../../domain/balancer-link.ts';
import { messageOf } from '../../shared/errors.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import type { Random } from '../../shared/random.ts';
import { AccessLog } from '../access-log/access-log.ts';
import { LineRate } from '../access-log/line-rate.ts';
import type { BalancerContext } from '../exchange/balancer-context.ts';
import type { BoardRow } from '../board/board.ts';
import { FileBudget, type FileLimits } from '../board/file-budget.ts';
import { Admission, rangesOf } from '../client/admission.ts';
import { ClientConnection } from '../client/client-connection.ts';
import { Deadlines } from '../transport/deadlines.ts';
import { HttpsRedirect } from '../tls/https-redirect.ts';
import { Listener, type Accepted, type ServedConnection } from './listener.ts';
import { ThreadMetrics } from '../metrics/thread-metrics.ts';
import { sampleThread } from '../metrics/thread-sampler.ts';
import { PausedClients } from '../transport/paused-clients.ts';
import { createPolicy } from '../policy/policies.ts';
import { SharedCounters, SharedQueueTally } from '../board/shared-counters.ts';
import type { SetOrder } from './thread-messages.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { ReplicaSet } from '../replicas/replica-set.ts';
import { createRequestIds, recordRefusal } from '../exchange/request-record.ts';
import { RetryBudget } from '../exchange/retry-budget.ts';
import type { Listening } from './thread-messages.ts';
import { NegotiatedConnection } from '../tls/negotiated-connection.ts';
import type { TlsMaterial } from '../tls/tls-files.ts';
import { TlsTerminator } from '../tls/tls-terminator.ts';
import { RequestQueue } from '../exchange/request-queue.ts';

interface DataPlaneDeps {
  readonly config: BalancerConfig;
  /** Undefined when the endpoint speaks no TLS. */
  readonly tls: TlsMaterial | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly row: BoardRow;
  readonly metricsRow: Float64Array;
  /** Over all threads together. */
  readonly limits: FileLimits;
  readonly suspect: (replicaId: number, reason: SuspectReason) => void;
  /** Called when a request is the first to wait while no replica serves. */
  readonly held: () => void;
}

/** The parts that serve requests in one thread. Threads share state only through the shared memory. */
export class DataPlane {
  readonly #context: BalancerContext;
  readonly #replicas: ReplicaSet;
  readonly #requestQueue: RequestQueue;
  readonly #accessLog: AccessLog;
  readonly #listener: Listener;
  readonly #tls: TlsTerminator | undefined;
  readonly #redirect: HttpsRedirect | undefined;
  readonly #logger: Logger;

  constructor({ config, tls, clock, random, logger, row, metricsRow, limits, suspect, held }: DataPlaneDeps) {
    this.#tls = tls === undefined ? undefined : new TlsTerminator(tls, config.tlsRules);
    // One thread is enough for it.
    const redirects = config.httpRedirectPort !== null && row.thread === 0;
    this.#redirect = tls === undefined || !redirects ? undefined : new HttpsRedirect(tls);
    this.#logger = logger;
    const deadlines = new Deadlines(clock);
    const files = new FileBudget(row, limits, deadlines);
    const metrics = new ThreadMetrics(metricsRow);
    sampleThread(metrics, clock);
    const crashed = (error: unknown): void => logger.error({ err: error }, 'Unexpected error on one connection');
    this.#replicas = new ReplicaSet(
      createPolicy(config.policy),
      random,
      {
        protocol: config.protocol,
        maxConnectionsPerReplica: config.maxConnectionsPerReplica,
        threads: row.board.threads,
        clock,
        deadlines,
        files,
        crashed,
        metrics,
      },
      row,
      config.session,
    );
    files.closeIdle = () => this.#replicas.closeIdle();
    const tally = new SharedQueueTally(row);
    const { room } = this.#replicas;
    this.#requestQueue = new RequestQueue({ deadlines, limits: config.queue, tally, threads: row.board.threads, room, onHeld: held });
    this.#accessLog = new AccessLog({
      path: config.accessLog,
      clock,
      rotates: row.thread === 0,
      onError: (message) => logger.error(message),
      onLost: (lines) => metrics.logLinesLost(lines),
    });
    const refusals = new LineRate();
    this.#context = {
      config,
      headLimits: { lineBytes: config.maxRequestLineBytes, headBytes: config.maxHeaderBytes, fields: config.maxHeaderCount },
      trustedProxies: rangesOf(config.trustedProxies),
      admission: new Admission(config, metrics),
      clock,
      deadlines,
      files,
      replicas: this.#replicas,
      retryBudget: new RetryBudget(row.board.budget),
      requestQueue: this.#requestQueue,
      pausedClients: new PausedClients(deadlines),
      counters: new SharedCounters(row),
      newRequestId: createRequestIds(),
      metrics,
      requestEnded: (record) => {
        metrics.requestEnded(record);
        this.#accessLog.add(record);
      },
      connectionRefused: (client, code, fault) => {
        if (refusals.admits(deadlines.now))
          this.#accessLog.add(recordRefusal(this.#context, { protocol: 'h1', forwarded: client }, code, fault));
      },
      suspect,
      crashed,
    };
    this.#listener = new Listener(this.#context, { serve: (...accepted) => this.#serve(...accepted) });
  }

  apply({ replicas, isKnown, expected }: Pick<SetOrder, 'replicas' | 'isKnown' | 'expected'>): void {
    this.#replicas.apply(replicas);
    this.#requestQueue.expected = expected;
    if (isKnown) this.#requestQueue.replicasChanged(this.#replicas.serving);
  }

  renewTls(material: TlsMaterial): void {
    this.#tls?.renew(material);
    this.#redirect?.renew(material);
  }

  /** See `Listener.listen`. The first thread also answers at the port for plain HTTP. */
  async listen(sources: readonly Listening[]): Promise<{ readonly port: number; readonly fds: readonly number[] }> {
    const listening = await this.#listener.listen(sources);
    const { httpRedirectPort: port } = this.#context.config;
    if (port !== null && this.#redirect !== undefined) {
      this.#redirect.port = listening.port;
      const isSuccessor = sources.some((source) => 'fd' in source);
      void this.#listener.listenForRedirects(port, isSuccessor, (error) => {
        this.#logger.error(`Port ${port} (load_balancer.http_redirect_port) is tried until it is free: ${messageOf(error)}`);
      });
    }
    return listening;
  }

  /** Takes no more requests, lets running requests finish within `graceMs`, and writes out pending output. */
  async stop(graceMs: number): Promise<void> {
    await this.#listener.drain(graceMs);
    await this.#accessLog.close();
  }

  /** Accepts no more, because another process does. Serves open connections for at most `graceMs`. */
  async handOver(graceMs: number): Promise<void> {
    this.#accessLog.leaveRotation();
    await this.#listener.handOver(graceMs);
    await this.#accessLog.close();
  }

  #serve(socket: Socket, onClosed: (connection: ServedConnection) => void, accepted: Accepted): ServedConnection {
    const { hasProxyHeader, isForRedirect } = accepted;
    const redirect = this.#redirect;
    const tls = isForRedirect ? undefined : this.#tls;
    const answer = isForRedirect && redirect !== undefined ? (head: RequestHead) => redirect.responseTo(head) : undefined;
    const mayBeHttp2 = this.#context.config.protocol === 'h2c' && !isForRedirect;
    // Where only HTTP/1 is spoken, no code checks the first bytes before the engine does.
    const isPlain = !hasProxyHeader && tls === undefined && !mayBeHttp2;
    if (isPlain) return new ClientConnection(socket, this.#context, onClosed, { answer });
    return new NegotiatedConnection(socket, this.#context, { tls, mayBeHttp2, hasProxyHeader, answer }, onClosed);
  }
}
