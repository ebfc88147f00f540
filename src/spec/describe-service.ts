import { grpcHealthPath } from '../domain/replica/probe.ts';
import type { ReplicaPolicy, ServiceSpec, Task } from '../domain/task.ts';
import { printable, redact } from '../shared/text.ts';
import { countReplicas } from '../domain/plan.ts';
import { describeAutoscaling } from './describe.ts';
import { openTask, printableAt, type TaskSource } from './task-document.ts';
import { nodeAt, type Path, type YamlNode } from './yaml/node.ts';

/** A service's settings as label and value. Shows names of variables, never values. `source`: the task's text. */
export function describeService(
  task: Task & { readonly service: ServiceSpec },
  source: TaskSource,
): readonly (readonly [label: string, value: string])[] {
  const { service } = task;
  const { readinessProbe: probe, replicaPolicy: policy, tls } = service;
  const { root } = openTask(source);
  const shown = (path: Path, value: string): string => printableAt(root, ['service', ...path], value);
  const headers = Object.keys(probe.headers).length > 0 ? ' with custom headers' : '';
  const inDetail = nodeAt(root, ['service', 'readiness_probe'])?.kind === 'map';
  const path = shown(inDetail ? ['readiness_probe', 'path'] : ['readiness_probe'], probe.path);
  const isGrpc = probe.path === grpcHealthPath;
  const request = isGrpc
    ? `gRPC health check ${path}`
    : probe.postData === undefined
      ? `GET ${path}`
      : `POST ${path} ${bodyAsWritten(root)}`;
  const lines: readonly (readonly [string, string])[] = [
    ['Readiness probe method', request + headers],
    ['Readiness initial delay seconds', String(probe.initialDelaySeconds)],
    ['Readiness probe timeout seconds', String(probe.timeoutSeconds)],
    ['Replica autoscaling policy', describeAutoscaling(task)],
    [
      'TLS certificates',
      tls === undefined
        ? 'No TLS'
        : `Keyfile: ${shown(['tls', 'keyfile'], tls.keyfile)}, certfile: ${shown(['tls', 'certfile'], tls.certfile)}`,
    ],
    ['Spot policy', describeSpotPolicy(policy)],
    ...(service.maxHourlyCost === undefined ? [] : ([['Most that replicas may cost', `$${service.maxHourlyCost} an hour`]] as const)),
    ['Load balancing policy', service.loadBalancingPolicy],
    ...(service.protocol === 'auto' ? [] : ([['Protocol of replicas', service.protocol]] as const)),
  ];
  // The file may repeat a secret outside of its section.
  return lines.map(([label, value]) => [label, printable(redact(value, Object.values(task.secrets)))]);
}

function bodyAsWritten(root: YamlNode): string {
  const node = nodeAt(root, ['service', 'readiness_probe', 'post_data']);
  if (node === undefined) return '';
  return node.kind === 'scalar' ? node.text : JSON.stringify(asWritten(node));
}

/** As `toValue`, with `$NAME` where a variable was substituted. */
function asWritten(node: YamlNode): unknown {
  if (node.kind === 'scalar') return node.origin === 'file' ? node.value : node.text;
  if (node.kind === 'list') return node.items.map(asWritten);
  return Object.fromEntries([...node.entries.values()].map((entry) => [entry.keyText, asWritten(entry.value)]));
}

function describeSpotPolicy(policy: ReplicaPolicy): string {
  const base = policy.baseOndemandFallbackReplicas;
  const withBase = base > 0 ? ` with ${countReplicas(base, 'base on-demand')}` : '';
  if (policy.spotPlacer === 'hedge') return `Hedge by the history of zones${withBase}`;
  if (policy.spotPlacer !== undefined) return `${policy.dynamicOndemandFallback ? 'SpotHedge' : 'Dynamic spot placement'}${withBase}`;
  if (policy.dynamicOndemandFallback) return `Dynamic on-demand fallback${withBase}`;
  return base > 0 ? `Static spot mixture${withBase}` : 'No spot policy';
}
