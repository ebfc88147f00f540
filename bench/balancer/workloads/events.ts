import { setTimeout as sleep } from 'node:timers/promises';
import { inRounds, withLineup, type Entry } from '../lineup.ts';
import { measureCpu, memoryMbOf } from '../entry-stats.ts';
import type { Metric, Sample, Section } from '../section.ts';
import { StreamClient, StreamReplicas, type StreamShape } from '../streams.ts';
import type { Workload, WorkloadOptions } from '../workload.ts';

const metrics: readonly Metric[] = [
  { key: 'perSecond', title: 'events/s', digits: 0 },
  { key: 'perRead', title: 'events/read', digits: 2 },
  { key: 'cpuMicros', title: 'CPU µs/event', digits: 1, isCompared: true },
  { key: 'kernelPercent', title: 'of it kernel %', digits: 0 },
  { key: 'memoryMb', title: 'RSS MB', digits: 0 },
];

/**
 * 13,000 events per second: the slowest proxy can still relay them one by one on two cores shared with client and
 * replica.
 */
const shape: StreamShape = { streams: 64, events: 200, gapMs: 5 };
const warmUpMs = 2_000;

/** Many concurrent event streams, such as chat replies. */
export const eventsWorkload: Workload = { name: 'sse', run };

async function run({ dir, contestants, rounds, seconds, profileDir }: WorkloadOptions): Promise<Section> {
  const replicas = await StreamReplicas.start(1);
  try {
    const options = { dir, replicaPorts: replicas.ports, isForStreams: true, maxConnections: 1_024, profileDir };
    const samples = await withLineup(contestants, options, (entries) => inRounds(entries, rounds, (entry) => measure(entry, seconds)));
    return { title: `${shape.events}-event SSE, one each ${shape.gapMs} ms, ${shape.streams} streams`, metrics, samples };
  } finally {
    await replicas.stop();
  }
}

async function measure(entry: Entry, seconds: number): Promise<Sample> {
  const client = await StreamClient.start(entry.proxy.port, shape);
  try {
    await sleep(warmUpMs);
    const startedAt = performance.now();
    const before = await client.counts();
    const stop = measureCpu(entry);
    await sleep(seconds * 1_000);
    const after = await client.counts();
    const cpu = stop();
    const events = after.events - before.events;
    return {
      perSecond: events / ((performance.now() - startedAt) / 1e3),
      perRead: events / (after.reads - before.reads),
      cpuMicros: cpu.micros / events,
      kernelPercent: cpu.kernelPercent,
      memoryMb: memoryMbOf(entry),
    };
  } finally {
    await client.stop();
  }
}
