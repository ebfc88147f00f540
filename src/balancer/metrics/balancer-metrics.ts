import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { svcVersion } from '../../shared/version.ts';
import type { PlacedReplica } from '../replicas/replica.ts';
import { renderMetrics, type ExpositionFormat } from './exposition.ts';
import { MetricsReader } from './metrics-reader.ts';
import { MetricsServer } from './metrics-server.ts';
import { readProcessFigures } from './process-figures.ts';
import { createMetricsMemory, metricsRows } from './row-layout.ts';
import { Samples } from './samples.ts';

/** What is so at this moment, which only the main thread can say. */
export interface BalancerMoment {
  /** Attempts under way by replica id. */
  readonly inFlight: Readonly<Record<string, number>>;
  readonly queueLength: number;
  readonly queueBytes: number;
  readonly clientConnections: number;
  readonly threads: number;
}

/** What the metrics need from outside. */
export interface BalancerMetricsDeps {
  readonly config: BalancerConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Wall time, ms. */
  readonly startedAt: number;
  readonly moment: () => BalancerMoment;
}

/** The metrics of one balancer, on the main thread: the memory that threads count in, and the server that tells what is there. */
export class BalancerMetrics {
  /** For `ThreadMetrics`, by way of `metricsRow`. */
  readonly memory: SharedArrayBuffer;
  readonly #deps: BalancerMetricsDeps;
  readonly #reader: MetricsReader;
  readonly #server: MetricsServer;
  #replicas: readonly PlacedReplica[] = [];

  constructor(deps: BalancerMetricsDeps) {
    const { config, clock, logger } = deps;
    this.#deps = deps;
    this.memory = createMetricsMemory(config.threads);
    this.#reader = new MetricsReader(metricsRows(this.memory));
    const render = (format: ExpositionFormat): string => this.#render(format);
    this.#server = new MetricsServer({ socketPath: config.metricsSocket, port: config.metricsPort, render, clock, logger });
  }

  /** The replicas that there are from now on. */
  setReplicas(replicas: readonly PlacedReplica[]): void {
    this.#replicas = replicas;
    for (const { slot, id } of replicas) this.#reader.assign(slot, id);
  }

  /** Begins to tell; takes over from a process whose place this one takes. Never rejects. */
  start(): Promise<void> {
    return this.#server.start();
  }

  /** Tells no more, so that another process can. */
  close(): void {
    this.#server.close();
  }

  #render(format: ExpositionFormat): string {
    const { config, startedAt, moment } = this.#deps;
    const { inFlight, queueLength, queueBytes, clientConnections, threads } = moment();
    const samples = new Samples();
    samples.add('buildInfo', 1, { service: config.service, version: svcVersion, node_version: process.version });
    this.#reader.read(samples);
    for (const [replica, count] of Object.entries(inFlight)) samples.add('inFlight', count, { replica });
    for (const { id, place } of this.#replicas) samples.add('replicaInfo', 1, { replica: String(id), place });
    samples.add('queueLength', queueLength);
    samples.add('queueBytes', queueBytes);
    samples.add('clientConnections', clientConnections);
    samples.add('threads', threads);
    readProcessFigures(samples, startedAt);
    return renderMetrics(samples, format);
  }
}
