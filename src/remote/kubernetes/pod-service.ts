import type { KubeApi, KubeDraft, KubeObject, PodRef } from '../../kubernetes/kube-api.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';
import type { Clock } from '../../shared/clock.ts';

/** What is read of a pod. */
export interface PodObject extends KubeObject {
  readonly status?: { readonly podIP?: string; readonly hostIP?: string };
}

/** What is read of a service. */
interface ServiceObject extends KubeObject {
  readonly spec?: { readonly ports?: readonly { readonly nodePort?: number }[] };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] } };
}

/** How often it is looked whether a load balancer has an address, ms. */
const pollMs = 2_000;

/** Path of the service that leads to a port of a pod from outside; it has the pod's name, so that each can be found from the other. */
export function servicePath({ namespace, name }: PodRef, port: number): string {
  return pathOfOne('Service', namespace, serviceName(name, port));
}

function serviceName(podName: string, port: number): string {
  const suffix = `-p${port}`;
  return `${podName.slice(0, 63 - suffix.length).replace(/[-.]+$/, '')}${suffix}`;
}

/**
 * A service that leads to one port of one pod. It belongs to the pod: the cluster removes it with that. The pod is chosen by the labels that svc gave it,
 * which no other one has all of; undefined when there are none.
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
      // Only the pod's own node answers, and the pod sees who really calls.
      externalTrafficPolicy: 'Local',
      selector: own,
      // Applying needs the protocol: it is part of what names a port.
      ports: [{ name: 'replica', port, targetPort: port, protocol: 'TCP' }],
    },
  };
}

/** Makes the service, or finds it as it is to be; gives its port on the nodes. */
export async function applyNodePort(api: KubeApi, pod: PodObject, port: number, signal?: AbortSignal): Promise<number | undefined> {
  const draft = serviceDraft(pod, port, 'NodePort');
  if (draft === undefined) return undefined;
  const path = servicePath({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name }, port);
  const service = await api.apply<ServiceObject>(path, draft, { signal });
  return service.spec?.ports?.[0]?.nodePort;
}

/** Makes the service with a load balancer, and waits until that has an address; undefined when it gets none. */
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

/** Which port, and how long to wait. */
export interface LoadBalancerOptions {
  readonly port: number;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}
