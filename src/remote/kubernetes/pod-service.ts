import type { KubeApi, KubeDraft, KubeObject, PodRef } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import type { Clock } from '../../shared/clock.ts';

/** The fields of a pod that this module reads. */
export interface PodObject extends KubeObject {
  readonly status?: { readonly podIP?: string; readonly hostIP?: string };
}

interface ServiceObject extends KubeObject {
  readonly spec?: { readonly ports?: readonly { readonly nodePort?: number }[] };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] } };
}

const pollMs = 2_000;

/** The Service that exposes a port of a pod. It has the pod's name in its own, so that each leads to the other. */
export function servicePath({ namespace, name }: PodRef, port: number): string {
  return pathOfOne('Service', namespace, serviceName(name, port));
}

function serviceName(podName: string, port: number): string {
  const suffix = `-p${port}`;
  return `${podName.slice(0, 63 - suffix.length).replace(/[-.]+$/, '')}${suffix}`;
}

/**
 * A Service for a pod's port. The pod owns it, so Kubernetes removes it with the pod. It selects the pod by svc's
 * labels: no other pod has all of them. Undefined when the pod has none.
 */
function serviceDraft(pod: PodObject, port: number, type: 'NodePort' | 'LoadBalancer'): KubeDraft | undefined {
  const { name, namespace, uid, labels = {} } = pod.metadata;
  const own = Object.fromEntries(Object.entries(labels).filter(([key]) => key.startsWith('svc-')));
  if (own['svc-key'] === undefined && own['svc-machine'] === undefined) return undefined;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceName(name, port),
      namespace,
      labels,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
    },
    spec: {
      type,
      // Only the pod's node answers, and the pod sees the client's real address.
      externalTrafficPolicy: 'Local',
      // Kubernetes marks an unresponsive node's pods as not ready. A replica that still answers must stay reachable.
      publishNotReadyAddresses: true,
      selector: own,
      // Server-side apply needs the protocol: it is part of a port's key.
      ports: [{ name: 'replica', port, targetPort: port, protocol: 'TCP' }],
    },
  };
}

/** Creates the Service or finds it as desired; returns its node port. */
export async function applyNodePort(api: KubeApi, pod: PodObject, port: number, signal?: AbortSignal): Promise<number | undefined> {
  const draft = serviceDraft(pod, port, 'NodePort');
  if (draft === undefined) return undefined;
  const path = servicePath({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, port);
  const service = await api.apply<ServiceObject>(path, draft, { signal });
  return service.spec?.ports?.[0]?.nodePort;
}

/** Creates the Service and waits for an address; undefined when it gets none in time. */
export async function applyLoadBalancer(
  api: KubeApi,
  pod: PodObject,
  { port, clock, timeoutMs, signal }: LoadBalancerOptions,
): Promise<string | undefined> {
  const draft = serviceDraft(pod, port, 'LoadBalancer');
  if (draft === undefined) return undefined;
  const path = servicePath({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, port);
  await api.apply<ServiceObject>(path, draft, { signal });
  const deadline = clock.monotonic() + timeoutMs;
  while (clock.monotonic() < deadline) {
    signal?.throwIfAborted();
    const service = await api.get<ServiceObject>(path, { signal });
    if (service === undefined) return undefined;
    const [ingress] = service.status?.loadBalancer?.ingress ?? [];
    const host = ingress?.ip ?? ingress?.hostname;
    if (host !== undefined) return host;
    await clock.sleep(pollMs, signal);
  }
  return undefined;
}

interface LoadBalancerOptions {
  readonly port: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}
