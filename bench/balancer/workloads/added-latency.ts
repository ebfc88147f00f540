import { join } from 'node:path';
import { measureCpu } from '../entry-stats.ts';
import { inRounds, withLineup, type Entry } from '../lineup.ts';
import type { PacedResult } from '../paced-client.ts';
import { runProgram } from '../processes.ts';
import { startInstantReplicas } from '../replica-nginx.ts';
import type { Metric, Sample, Section } from '../section.ts';
import type { Workload, WorkloadOptions } from '../workload.ts';

const metrics: readonly Metric[] = [
  { key: 'p50Ms', title: 'p50 ms', digits: 3 },
  { key: 'p99Ms', title: 'p99 ms', digits: 3 },
  { key: 'addedP50Ms', title: 'added p50 ms', digits: 3 },
  { key: 'addedP99Ms', title: 'added p99 ms', digits: 3 },
  { key: 'cpuMicros', title: 'CPU µs/request', digits: 1, isCompared: true },
  { key: 'kernelPercent', title: 'of it kernel %', digits: 0 },
];

const perSecond = 1_000;
const direct = 'direct';

/** The latency that a proxy adds to a request at low load. */
export const addedLatencyWorkload: Workload = { name: 'latency', run };

async function run({ dir, contestants, rounds, seconds, profileDir }: WorkloadOptions): Promise<Section> {
  const replicas = await startInstantReplicas(dir);
  try {
    const options = { dir, replicaPorts: replicas.ports, isForStreams: false, maxConnections: 1_024, profileDir };
    const withoutProxy: Entry = {
      name: direct,
      proxy: { port: replicas.ports[0] ?? 0, pid: undefined, stop: () => Promise.resolve() },
    };
    const measured = await withLineup(contestants, options, async (entries) => {
      const allEntries = [withoutProxy, ...entries];
      for (const entry of allEntries) await measure(entry, 1);
      return inRounds(allEntries, rounds, (entry) => measure(entry, seconds));
    });
    const samples = new Map([...measured].map(([name, own]) => [name, withAdded(own, measured.get(direct) ?? [])] as const));
    return { title: `Added latency at ${perSecond.toLocaleString('en')} requests/s`, metrics, samples };
  } finally {
    await replicas.stop();
  }
}

async function measure(entry: Entry, seconds: number): Promise<Sample> {
  const client = join(import.meta.dirname, '../paced-client.ts');
  const stop = measureCpu(entry);
  const output = await runProgram(process.execPath, [client, ...[entry.proxy.port, perSecond, seconds].map(String)]);
  const cpu = stop();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the program of this benchmark writes it
  const { requests, p50Ms, p99Ms } = JSON.parse(output) as PacedResult;
  return { p50Ms, p99Ms, cpuMicros: cpu.micros / requests, kernelPercent: cpu.kernelPercent };
}

/** Adds the difference to the direct times of the same round. */
function withAdded(samples: readonly Sample[], directSamples: readonly Sample[]): readonly Sample[] {
  const added = (key: 'p50Ms' | 'p99Ms', sample: Sample, round: number): number =>
    (sample[key] ?? Number.NaN) - (directSamples[round]?.[key] ?? Number.NaN);
  return samples.map((sample, round) => ({
    ...sample,
    addedP50Ms: added('p50Ms', sample, round),
    addedP99Ms: added('p99Ms', sample, round),
  }));
}
