import { createSvc } from '../contestants/svc.ts';
import type { Section } from '../section.ts';
import type { Workload, WorkloadOptions } from '../workload.ts';
import { measureRequests, smallPost } from './requests.ts';

const one = createSvc('svc, 1 thread', 1);
const two = createSvc('svc, 2 threads', 2);

/**
 * The gain from a second thread. When client, replicas and proxy share two cores, only the CPU time shows what more
 * cores would allow.
 */
export const threadsWorkload: Workload = { name: 'threads', run };

async function run(options: WorkloadOptions): Promise<Section> {
  const section = await measureRequests(smallPost, { ...options, contestants: [one, two] });
  const metrics = section.metrics.map((metric) => ({ ...metric, isCompared: ['perSecond', 'cpuMicros'].includes(metric.key) }));
  return { title: `One thread and two: ${section.title}`, metrics, samples: section.samples, yardsticks: [one.name] };
}
