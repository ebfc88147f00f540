import { countReplicas } from '../domain/plan.ts';
import type { Amount, ReplicaPolicy, ResourceAlternatives, Resources, Task } from '../domain/task.ts';
import { printable } from '../shared/text.ts';

/** `Fixed 2 replicas`, or minimum, maximum and target load; `-` for a task without a service. */
export function describeAutoscaling(task: Task): string {
  const policy = task.service?.replicaPolicy;
  if (policy === undefined) return '-';
  const { minReplicas: min, maxReplicas: max, schedule = [] } = policy;
  const extra = policy.numOverprovision > 0 ? ` with ${countReplicas(policy.numOverprovision, 'overprovisioned')}` : '';
  const byTime =
    schedule.length === 0 ? '' : `; ${schedule.length} scheduled ${schedule.length === 1 ? 'change' : 'changes'} of the bounds`;
  if (min === max) return `Fixed ${countReplicas(min)}${extra}${byTime}`;
  const atZero = policy.scaleToZero === 'sleep' ? '; at zero, one sleeps' : '';
  return `Autoscaling from ${min} to ${max} replicas${extra} (${describeTarget(policy)})${atZero}${byTime}`;
}

function describeTarget(policy: ReplicaPolicy): string {
  const {
    autoscaler = 'request_rate',
    targetQpsPerReplica: target,
    targetOngoingRequestsPerReplica: ongoing,
    targetTtfbSeconds: ttfb,
    metricsPath,
  } = policy;
  const metrics = metricsPath === undefined ? '' : `, engine metrics from ${metricsPath}`;
  if (autoscaler === 'concurrency') return `concurrency, target ongoing requests per replica: ${ongoing}${metrics}`;
  const goal = typeof target === 'object' ? Object.entries(target).map(([name, qps]) => `${name}: ${qps}`) : [String(target)];
  const qps = `target QPS per replica: ${goal.join(', ')}`;
  return autoscaler === 'forecast' ? `forecast, ${qps}${ttfb === undefined ? '' : `, first byte within ${ttfb} s`}${metrics}` : qps;
}

/** Alternatives beyond this are counted, not listed. */
const shownChoices = 3;

/** Requirements for each machine, in short: `aws/us-east-1 L4:2, 4+ CPUs, 16 GB, spot`; `-` without requirements. */
export function describeResources(task: Task): string {
  const all = describeAlternatives(task.resources);
  return task.numNodes > 1 ? `${task.numNodes}x[${all}]` : all;
}

/** Requirements for one machine: each alternative in a few words. */
export function describeAlternatives({ order, choices }: ResourceAlternatives): string {
  const shown = [...new Set(choices.map(describeMachine))];
  const rest = shown.length - shownChoices;
  const words = shown.slice(0, shownChoices).join(order === 'ordered' ? ', else ' : ' or ');
  return printable(`${words}${rest > 0 ? ` and ${rest} more` : ''}`);
}

function describeMachine(machine: Resources): string {
  const { cpus, memory, accelerator, acceleratorMemory } = machine;
  const location = [machine.cloud ?? '*', machine.region ?? '*', machine.zone ?? '*'].join('/').replace(/(\/\*)+$/, '');
  const parts = [
    location === '*' ? '' : location,
    accelerator === undefined ? '' : `${accelerator.name}:${accelerator.count}`,
    acceleratorMemory === undefined ? '' : `${describeAmount(acceleratorMemory)} GB GPU:${acceleratorMemory.count}`,
    machine.instanceType ?? '',
    cpus === undefined ? '' : `${describeAmount(cpus)} ${cpus.value === 1 && !cpus.atLeast ? 'CPU' : 'CPUs'}`,
    memory === undefined ? '' : `${describeAmount(memory)} GB`,
    machine.useSpot ? 'spot' : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? '-' : parts.join(', ');
}

function describeAmount({ value, atLeast }: Amount): string {
  return `${Number(value.toFixed(2))}${atLeast ? '+' : ''}`;
}
