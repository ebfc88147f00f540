import type { KubernetesReach } from '../../domain/config.ts';
import type { KubeApi, PodRef } from '../../kubernetes/kube-api.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { applyLoadBalancer, applyNodePort, servicePath, type PodObject } from './pod-service.ts';
import { leadsToPod } from './proof.ts';
import { hasOwnRoute } from './routes.ts';
import { listensOn } from './tcp-table.ts';

/** How long the nodes may take to learn of a new service, ms, and how often they are tried meanwhile. */
const nodePortMs = 5_000;
const nodePortPauseMs = 250;

/** How long a load balancer may take to get an address, ms. */
const loadBalancerMs = 600_000;

/** What is needed to find out how a port of a pod is reached. */
export interface PodAddressDeps {
  readonly api: KubeApi;
  readonly pod: PodRef;
  readonly reach: KubernetesReach;
  /** /proc/net/tcp and tcp6 of the pod. */
  readonly connectionsInPod: () => Promise<string>;
  /** /proc/net/route and ipv6_route of this machine. */
  readonly routes: () => { readonly v4: string; readonly v6: string };
  /** The way through the API server, which works in any case: a socket file here. */
  readonly forward: () => Promise<string>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** How to connect to a port of a pod from here, by what the configuration allows and what is found to work. */
export async function podAddress(port: number, deps: PodAddressDeps): Promise<ReplicaAddress> {
  const { api, reach, clock, signal } = deps;
  if (reach === 'port-forward') return forwarded(port, deps);
  if (reach === 'auto') return (await foundAddress(port, deps)) ?? forwarded(port, deps);
  const pod = await readPod(deps);
  if (reach === 'pod') return { kind: 'tcp', host: podIp(pod), port, by: 'pod address' };
  if (reach === 'node-port') {
    const nodePort = await applyNodePort(api, pod, port, signal);
    if (nodePort === undefined || pod.status?.hostIP === undefined) throw noWay(deps, 'it has no port on a node');
    return { kind: 'tcp', host: pod.status.hostIP, port: nodePort, by: 'node port' };
  }
  const host = await applyLoadBalancer(api, pod, { port, clock, timeoutMs: loadBalancerMs, signal });
  if (host === undefined) throw noWay(deps, 'its load balancer got no address within 10 minutes');
  return { kind: 'tcp', host, port, by: 'load balancer' };
}

/** The first direct way that is proven to lead to the pod; undefined when there is none, as long as the program does not listen. */
async function foundAddress(port: number, deps: PodAddressDeps): Promise<ReplicaAddress | undefined> {
  const { api, connectionsInPod, clock } = deps;
  const pod = await readPod(deps);
  const { podIP, hostIP } = pod.status ?? {};
  if (api.isInside && podIP !== undefined) return { kind: 'tcp', host: podIP, port, by: 'pod address' };
  const tables = deps.routes();
  const isNear = (address: string | undefined): address is string => address !== undefined && hasOwnRoute(address, tables);
  if (!isNear(podIP) && !isNear(hostIP)) return undefined;
  if (!listensOn(await connectionsInPod(), port)) return undefined;
  const proof = { connectionsInPod, clock };
  if (isNear(podIP) && (await leadsToPod({ host: podIP, port, podPort: port }, proof)))
    return { kind: 'tcp', host: podIP, port, by: 'pod address' };
  return isNear(hostIP) ? foundNodePort(pod, hostIP, port, deps) : undefined;
}

async function foundNodePort(pod: PodObject, host: string, port: number, deps: PodAddressDeps): Promise<ReplicaAddress | undefined> {
  const { api, connectionsInPod, clock, signal } = deps;
  const path = servicePath(deps.pod, port);
  let isNew: boolean;
  let nodePort: number | undefined;
  try {
    isNew = (await api.get(path, { signal })) === undefined;
    nodePort = await applyNodePort(api, pod, port, signal);
  } catch (error) {
    // It may be forbidden, or there may be no port left: then there is still the forward.
    if (error instanceof SvcError && error.code !== 'SVC_NOT_LEADER') return undefined;
    throw error;
  }
  if (nodePort === undefined) return undefined;
  // A way that is mended is one that the nodes have known: who waited for it once more would have no time left for the forward.
  const deadline = clock.monotonic() + (isNew ? nodePortMs : 0);
  for (;;) {
    signal?.throwIfAborted();
    if (await leadsToPod({ host, port: nodePort, podPort: port }, { connectionsInPod, clock }))
      return { kind: 'tcp', host, port: nodePort, by: 'node port' };
    if (clock.monotonic() >= deadline) break;
    await clock.sleep(nodePortPauseMs, signal);
  }
  await api.remove(path, { signal });
  return undefined;
}

async function forwarded(port: number, { forward }: PodAddressDeps): Promise<ReplicaAddress> {
  return { kind: 'forward', path: await forward(), port, by: 'port-forward' };
}

async function readPod(deps: PodAddressDeps): Promise<PodObject> {
  const pod = await deps.api.get<PodObject>(podPath(deps.pod), { signal: deps.signal });
  if (pod === undefined) throw noWay(deps, 'it is gone');
  return pod;
}

function podIp(pod: PodObject): string {
  const address = pod.status?.podIP;
  if (address === undefined)
    throw new SvcError('SVC_PLACE_FAILED', `The pod ${pod.metadata.namespace}/${pod.metadata.name} has no address.`);
  return address;
}

function noWay({ pod }: PodAddressDeps, why: string): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `The pod ${pod.namespace}/${pod.name} cannot be reached: ${why}.`);
}
