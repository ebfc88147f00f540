import type { Amount, ReplicaPolicy, Resources, ServiceSpec, Task } from '../domain/task.ts';
import { printable } from '../shared/quote.ts';
import { redact } from '../shared/redact.ts';

/** A service's settings as label and value, printed before anything is started. Values of secrets are starred out. */
export function describeService(task: Task & { readonly service: ServiceSpec }): readonly (readonly [label: string, value: string])[] {
  const { service } = task;
  const { readinessProbe: probe, replicaPolicy: policy, tls } = service;
  const headers = Object.keys(probe.headers).length > 0 ? ' with custom headers' : '';
  const request = probe.postData === undefined ? `GET ${probe.path}` : `POST ${probe.path} ${probe.postData}`;
  const lines: readonly (readonly [string, string])[] = [
    ['Readiness probe method', request + headers],
    ['Readiness initial delay seconds', String(probe.initialDelaySeconds)],
    ['Readiness probe timeout seconds', String(probe.timeoutSeconds)],
    ['Replica autoscaling policy', describeAutoscaling(task)],
    ['TLS certificates', tls === undefined ? 'No TLS' : `Keyfile: ${tls.keyfile}, certfile: ${tls.certfile}`],
    ['Spot policy', describeSpotPolicy(policy)],
    ['Load balancing policy', service.loadBalancingPolicy],
  ];
  return lines.map(([label, value]) => [label, printable(redact(value, Object.values(task.secrets)))]);
}

function describeSpotPolicy(policy: ReplicaPolicy): string {
  const base = policy.baseOndemandFallbackReplicas;
  const withBase = base > 0 ? ` with ${countReplicas(base, 'base on-demand')}` : '';
  if (policy.spotPlacer !== undefined) return `Dynamic spot placement${withBase}`;
  if (policy.dynamicOndemandFallback) return `Dynamic on-demand fallback${withBase}`;
  return base > 0 ? `Static spot mixture${withBase}` : 'No spot policy';
}

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
function countReplicas(count: number, kind?: string): string {
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
  return printable(`${task.numNodes > 1 ? `${task.numNodes}x ` : ''}${words}${rest > 0 ? ` and ${rest} more` : ''}`);
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
