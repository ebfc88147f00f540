import { readdirSync } from 'node:fs';
import type { BalancerConfig } from '../../domain/balancer-link.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Logger } from '../../shared/log.ts';
import { svcVersion } from '../../shared/version.ts';
import type { SlottedReplica } from '../replicas/replica.ts';
import { type ExpositionFormat, renderMetrics } from './exposition.ts';
import { MetricsReader } from './metrics-reader.ts';
import { MetricsServer } from './metrics-server.ts';
import { OutcomeReader } from './outcome-reader.ts';
import { createMetricsMemory, metricsRows } from './row-layout.ts';
import { Samples } from './samples.ts';
import { openFilesLimit } from '../threads/connection-limit.ts';

/** Current values that only the main thread knows. */
export interface BalancerSnapshot {
  /** By replica id. */
  readonly inFlight: Readonly<Record<string, number>>;
  readonly queueLength: number;
  readonly queueBytes: number;
  readonly clientConnections: number;
  readonly threads: number;
}

interface BalancerMetricsDeps {
  readonly config: BalancerConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Wall time, ms. */
  readonly startedAt: number;
  readonly snapshot: () => BalancerSnapshot;
}

/** The metrics of one balancer, on the main thread: the memory that threads count in, and the server. */
export class BalancerMetrics {
  /** Given to `ThreadMetrics`, through `metricsRow`. */
  readonly memory: SharedArrayBuffer;
  readonly outcomes: OutcomeReader;
  readonly #deps: BalancerMetricsDeps;
  readonly #reader: MetricsReader;
  readonly #server: MetricsServer;
  #replicas: readonly SlottedReplica[] = [];

  constructor(deps: BalancerMetricsDeps) {
    const { config, clock, logger } = deps;
    this.#deps = deps;
    this.memory = createMetricsMemory(config.threads);
    this.#reader = new MetricsReader(metricsRows(this.memory));
    this.outcomes = new OutcomeReader(metricsRows(this.memory));
    const render = (format: ExpositionFormat): string => this.#render(format);
    this.#server = new MetricsServer({ socketPath: config.metricsSocket, port: config.metricsPort, render, clock, logger });
  }

  setReplicas(replicas: readonly SlottedReplica[]): void {
    this.#replicas = replicas;
    for (const { slot, id } of replicas) this.#reader.assign(slot, id);
    this.outcomes.setReplicas(replicas);
  }

  /** Starts to serve the metrics; takes over from the process that this one replaces. Never rejects. */
  start(): Promise<void> {
    return this.#server.start();
  }

  /** Stops serving, so another process can. */
  close(): void {
    this.#server.close();
  }

  #render(format: ExpositionFormat): string {
    const { config, startedAt, snapshot: moment } = this.#deps;
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

const microsecondsPerSecond = 1_000_000;
const msPerSecond = 1_000;

function readProcessFigures(samples: Samples, startedAt: number): void {
  const { user, system } = process.cpuUsage();
  samples.add('processCpu', (user + system) / microsecondsPerSecond);
  samples.add('processMemory', process.memoryUsage.rss());
  samples.add('processStart', startedAt / msPerSecond);
  const openFiles = countOpenFiles();
  if (openFiles !== undefined) samples.add('processOpenFiles', openFiles);
  samples.add('processMaxFiles', openFilesLimit());
}

function countOpenFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    // Not Linux: the value is left out.
    return undefined;
  }
}
