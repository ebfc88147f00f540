import type { ReplicaPolicy, ServiceSpec, Task } from '../domain/task.ts';
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
    ['Replica autoscaling policy', describePolicy(policy)],
    ['TLS certificates', tls === undefined ? 'No TLS' : `Keyfile: ${tls.keyfile}, certfile: ${tls.certfile}`],
    ['Spot policy', describeSpotPolicy(policy)],
    ['Load balancing policy', service.loadBalancingPolicy],
  ];
  return lines.map(([label, value]) => [label, printable(redact(value, Object.values(task.secrets)))]);
}

/** How many replicas, in words: `Fixed 2 replicas`, or from, to, and at which load. */
export function describePolicy(policy: ReplicaPolicy): string {
  const { minReplicas: min, maxReplicas: max, targetQpsPerReplica: target } = policy;
  const extra = policy.numOverprovision > 0 ? ` with ${policy.numOverprovision} overprovisioned ${plural(policy.numOverprovision)}` : '';
  if (min === max) return `Fixed ${min} ${plural(min)}${extra}`;
  const goal = typeof target === 'object' ? Object.entries(target).map(([name, qps]) => `${name}: ${qps}`) : [String(target)];
  return `Autoscaling from ${min} to ${max} replicas${extra} (target QPS per replica: ${goal.join(', ')})`;
}

function describeSpotPolicy(policy: ReplicaPolicy): string {
  const base = policy.baseOndemandFallbackReplicas;
  const withBase = base > 0 ? ` with ${base} base on-demand ${plural(base)}` : '';
  if (policy.spotPlacer !== undefined) return `Dynamic spot placement${withBase}`;
  if (policy.dynamicOndemandFallback) return `Dynamic on-demand fallback${withBase}`;
  return base > 0 ? `Static spot mixture${withBase}` : 'No spot policy';
}

function plural(count: number): string {
  return count === 1 ? 'replica' : 'replicas';
}
