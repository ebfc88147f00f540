import { setTimeout as sleep } from 'node:timers/promises';
import { measureCpu, memoryMbOf } from '../entry-stats.ts';
import { withLineup, type Entry } from '../lineup.ts';
import { streamCapacity } from '../open-files.ts';
import type { Metric, Sample, Section } from '../section.ts';
import { StreamClient, StreamReplicas } from '../streams.ts';
import type { Workload, WorkloadOptions } from '../workload.ts';

const metrics: readonly Metric[] = [
  { key: 'memoryMb', title: 'RSS MB', digits: 0, isCompared: true },
  { key: 'perStreamKb', title: 'KB/stream', digits: 1 },
  { key: 'cpuPercent', title: 'CPU % of a core', digits: 2, isCompared: true },
  { key: 'cpuMicros', title: 'CPU µs/event', digits: 1 },
  { key: 'perSecond', title: 'events/s', digits: 0 },
];

const gapMs = 10_000;
/** After this time, the cost of opening is gone: garbage is collected and buffers are released. */
const settleMs = 3_000;
/** Each stream sends at least one event in this time. */
const holdMs = 10_000;

/**
 * Open streams with little traffic, such as slow generations or subscriptions. One round suffices: memory use is
 * stable.
 */
function idleWorkload(requested: number): Workload {
  return { name: `idle-${requested}`, run: (options) => run(requested, options) };
}

async function run(requested: number, { dir, contestants, profileDir }: WorkloadOptions): Promise<Section> {
  const streams = Math.min(requested, streamCapacity());
  const replicas = await StreamReplicas.start(25);
  const samples = new Map<string, readonly Sample[]>();
  try {
    const options = { dir, replicaPorts: replicas.ports, isForStreams: true, maxConnections: streams + 32, profileDir };
    // One after the other, each in a fresh process.
    for (const contestant of contestants) {
      const sample = await withLineup([contestant], options, ([entry]) => measure(entry, streams));
      samples.set(contestant.name, [sample]);
    }
  } finally {
    await replicas.stop();
  }
  const limit = streams < requested ? ` (${streams.toLocaleString('en')}: the limit of open files allows no more)` : '';
  return { title: `${requested.toLocaleString('en')} mostly idle streams${limit}, an event each ${gapMs / 1e3} s`, metrics, samples };
}

async function measure(entry: Entry | undefined, streams: number): Promise<Sample> {
  if (entry === undefined) throw new Error('There is nothing to measure');
  const memoryBefore = memoryMbOf(entry);
  // More events than the measurement has time for.
  const client = await StreamClient.start(entry.proxy.port, { streams, events: 1_000, gapMs });
  try {
    await sleep(settleMs);
    const before = await client.counts();
    const startedAt = performance.now();
    const stop = measureCpu(entry);
    await sleep(holdMs);
    const seconds = (performance.now() - startedAt) / 1e3;
    const cpu = stop();
    const after = await client.counts();
    const events = after.events - before.events;
    const memoryMb = memoryMbOf(entry);
    return {
      memoryMb,
      perStreamKb: ((memoryMb - memoryBefore) * 1e3) / streams,
      cpuPercent: cpu.micros / 1e4 / seconds,
      cpuMicros: cpu.micros / events,
      perSecond: events / seconds,
    };
  } finally {
    await client.stop();
  }
}

/** 1,000 streams, and 10,000, the target for one process. */
export const idleWorkloads: readonly Workload[] = [idleWorkload(1_000), idleWorkload(10_000)];
