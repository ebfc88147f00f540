import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inRounds, withLineup, type Entry } from '../lineup.ts';
import { measureCpu, memoryMbOf } from '../entry-stats.ts';
import { startInstantReplicas } from '../replica-nginx.ts';
import type { Metric, Sample, Section } from '../section.ts';
import type { Workload, WorkloadOptions } from '../workload.ts';
import { runWrk, wrkConnections } from '../wrk.ts';

const metrics: readonly Metric[] = [
  { key: 'perSecond', title: 'requests/s', digits: 0 },
  { key: 'cpuMicros', title: 'CPU µs/request', digits: 1, isCompared: true },
  { key: 'kernelPercent', title: 'of it kernel %', digits: 0 },
  { key: 'p50Ms', title: 'p50 ms', digits: 2 },
  { key: 'p99Ms', title: 'p99 ms', digits: 2 },
  { key: 'memoryMb', title: 'RSS MB', digits: 0 },
];

/** Enough time for V8 to optimise hot code. */
const warmUpSeconds = 3;

/** The request that is repeated. */
export interface Request {
  readonly name: string;
  readonly title: string;
  readonly path: string;
  readonly body?: string;
}

/** A chat completion whose prompt gives the body about the requested size. */
function completion(bytes: number): string {
  const sentence = 'Explain in two sentences what a load balancer does and why one would want to have it. ';
  const frame = { model: 'meta-llama/Llama-3.1-8B-Instruct', temperature: 0.7, max_tokens: 128, stream: false };
  const overhead = JSON.stringify({ ...frame, messages: [{ role: 'user', content: '' }] }).length;
  const content = sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes - overhead);
  return JSON.stringify({ ...frame, messages: [{ role: 'user', content }] });
}

function requestWorkload(request: Request): Workload {
  return { name: request.name, run: (options) => measureRequests(request, options) };
}

/** Measures one kind of request. */
export async function measureRequests(request: Request, options: WorkloadOptions): Promise<Section> {
  const { dir, contestants, rounds, seconds, profileDir } = options;
  const replicas = await startInstantReplicas(dir);
  try {
    const bodyFile = request.body === undefined ? undefined : join(dir, 'body.json');
    if (bodyFile !== undefined && request.body !== undefined) writeFileSync(bodyFile, request.body);
    const load = (entry: Entry, duration: number) => runWrk(`http://127.0.0.1:${entry.proxy.port}${request.path}`, duration, bodyFile);
    const measure = async (entry: Entry): Promise<Sample> => {
      const stop = measureCpu(entry);
      const result = await load(entry, seconds);
      const cpu = stop();
      return {
        perSecond: (result.requests / result.micros) * 1e6,
        cpuMicros: cpu.micros / result.requests,
        kernelPercent: cpu.kernelPercent,
        p50Ms: result.p50Micros / 1e3,
        p99Ms: result.p99Micros / 1e3,
        memoryMb: memoryMbOf(entry),
      };
    };
    const proxyOptions = { dir, replicaPorts: replicas.ports, isForStreams: false, maxConnections: 1_024, profileDir };
    const samples = await withLineup(contestants, proxyOptions, async (entries) => {
      for (const entry of entries) await load(entry, warmUpSeconds);
      return inRounds(entries, rounds, measure);
    });
    return { title: `${request.title}, ${wrkConnections} connections`, metrics, samples };
  } finally {
    await replicas.stop();
  }
}

/** The most common request of chat clients. */
export const smallPost: Request = { name: 'post', title: 'Small JSON POST', path: '/v1/chat/completions', body: completion(300) };

/** Requests sent as fast as replies arrive. */
export const requestWorkloads: readonly Workload[] = [
  requestWorkload({ name: 'get', title: 'Small GET', path: '/ping' }),
  requestWorkload(smallPost),
  requestWorkload({ name: 'prompt', title: '50 KB prompt', path: '/v1/chat/completions', body: completion(50_000) }),
];
