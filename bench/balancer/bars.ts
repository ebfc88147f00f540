import type { Section } from './section.ts';
import { median, pairedRatios } from './statistics.ts';

/** A minimum figure for this project's balancer. */
interface Bar {
  readonly title: string;
  /** Name of the workload that measures the figure. */
  readonly workload: string;
  readonly metric: string;
  /** The contestant whose figure is judged; `svc` by default. */
  readonly contestant?: string;
  /** The contestant whose figure is the divisor; without one, the figure itself is judged. */
  readonly dividedBy?: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

const cpuToHaproxy = (workload: string, title: string): Bar => ({
  title,
  workload,
  metric: 'cpuMicros',
  dividedBy: 'haproxy',
  atMost: 1.5,
});

const bars: readonly Bar[] = [
  cpuToHaproxy('get', 'CPU per small GET : HAProxy'),
  cpuToHaproxy('post', 'CPU per small POST : HAProxy'),
  cpuToHaproxy('prompt', 'CPU per 50 KB prompt : HAProxy'),
  cpuToHaproxy('sse', 'CPU per SSE event : HAProxy'),
  { title: 'added p50 at 1,000 requests/s, ms', workload: 'latency', metric: 'addedP50Ms', atMost: 0.3 },
  { title: 'added p99 at 1,000 requests/s, ms', workload: 'latency', metric: 'addedP99Ms', atMost: 2 },
  { title: 'memory with 10,000 streams, MB', workload: 'idle-10000', metric: 'memoryMb', atMost: 400 },
  {
    title: 'requests/s of two threads : one, where cores allow',
    workload: 'threads',
    metric: 'perSecond',
    contestant: 'svc, 2 threads',
    dividedBy: 'svc, 1 thread',
    atLeast: 1.7,
  },
];

/** The bars and whether they were reached, as a Markdown table. It covers only workloads and contestants that ran. */
export function barsMarkdown(sections: ReadonlyMap<string, Section>): string {
  const rows = bars.flatMap((bar) => {
    const section = sections.get(bar.workload);
    const value = section === undefined ? Number.NaN : valueOf(bar, section);
    return Number.isNaN(value) ? [] : [row(bar, value)];
  });
  return ['| bar | limit | measured | |', '|---|---:|---:|---|', ...rows].join('\n');
}

function valueOf({ contestant = 'svc', dividedBy, metric }: Bar, { samples }: Section): number {
  const values = (name: string): readonly number[] => (samples.get(name) ?? []).map((sample) => sample[metric] ?? Number.NaN);
  return dividedBy === undefined ? median(values(contestant)) : pairedRatios(values(contestant), values(dividedBy)).median;
}

function row({ title, atMost, atLeast }: Bar, value: number): string {
  const isReached = atMost === undefined ? value >= (atLeast ?? Number.NaN) : value <= atMost;
  const limit = atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`;
  return `| ${title} | ${limit} | ${value.toFixed(2)} | ${isReached ? 'reached' : 'missed'} |`;
}
