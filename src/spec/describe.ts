import type { Amount, Resources, Task } from '../domain/task.ts';
import { printable } from '../shared/quote.ts';

/** How many replicas, in words: `Fixed 2 replicas`, or from, to, and at which load. A task without a service has none. */
export function describeAutoscaling(task: Task): string {
  const policy = task.service?.replicaPolicy;
  if (policy === undefined) return '-';
  const { minReplicas: min, maxReplicas: max, targetQpsPerReplica: target } = policy;
  const extra = policy.numOverprovision > 0 ? ` with ${countReplicas(policy.numOverprovision, 'overprovisioned')}` : '';
  if (min === max) return `Fixed ${countReplicas(min)}${extra}`;
  const goal = typeof target === 'object' ? Object.entries(target).map(([name, qps]) => `${name}: ${qps}`) : [String(target)];
  return `Autoscaling from ${min} to ${max} replicas${extra} (target QPS per replica: ${goal.join(', ')})`;
}

/** `1 replica`, `2 spare replicas`. */
export function countReplicas(count: number, kind?: string): string {
  return `${count}${kind === undefined ? '' : ` ${kind}`} ${count === 1 ? 'replica' : 'replicas'}`;
}

/** Alternatives beyond this are counted, not listed. */
const shownChoices = 3;

/** What each machine must have, in a few words: `aws/us-east-1 L4:2, 4+ CPUs, 16 GB, spot`. `-` when anything will do. */
export function describeResources(task: Task): string {
  const { order, choices } = task.resources;
  const shown = [...new Set(choices.map(describeMachine))];
  const rest = shown.length - shownChoices;
  const words = shown.slice(0, shownChoices).join(order === 'ordered' ? ', else ' : ' or ');
  const all = `${words}${rest > 0 ? ` and ${rest} more` : ''}`;
  return printable(task.numNodes > 1 ? `${task.numNodes}x[${all}]` : all);
}

function describeMachine(machine: Resources): string {
  const { cpus, memory, accelerator, acceleratorMemory } = machine;
  const place = [machine.cloud ?? '*', machine.region ?? '*', machine.zone ?? '*'].join('/').replace(/(\/\*)+$/, '');
  const parts = [
    place === '*' ? '' : place,
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
