import type { ReplicaPolicy, ServiceSpec, Task } from '../domain/task.ts';
import { printable } from '../shared/quote.ts';
import { redact } from '../shared/redact.ts';
import { countReplicas, describeAutoscaling } from './describe.ts';

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
