import type { Socket } from 'node:net';
import type { KubernetesReach } from '../../domain/config.ts';
import type { KubeApi, PodRef } from '../../kubernetes/kube-api.ts';
import { podPath } from '../../kubernetes/paths.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { type PodObject, applyLoadBalancer, applyNodePort, servicePath } from './pod-service.ts';
import { hasOwnRoute } from './routes.ts';
import { hasConnection, listensOn } from '../tcp-table.ts';
import { DialError, dialReplica } from '../../shared/system/dial.ts';

/** Limit for nodes to apply a new Service, and the interval of attempts, ms. */
const nodePortMs = 5_000;
const nodePortPauseMs = 250;

/** Limit for a load balancer to get an address, ms. */
const loadBalancerMs = 600_000;

interface PodAddressDeps {
  readonly api: KubeApi;
  readonly pod: PodRef;
  readonly reach: KubernetesReach;
  /** Content of the pod's /proc/net/tcp and tcp6. */
  readonly connectionsInPod: () => Promise<string>;
  /** Content of this machine's /proc/net/route and ipv6_route. */
  readonly routes: () => { readonly v4: string; readonly v6: string };
  /** Opens a port-forward through the API server, which always works. Returns a local socket's path. */
  readonly forward: () => Promise<string>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** How to connect to a pod's port from this machine: by the configured route, or the first one that works. */
export async function podAddress(port: number, deps: PodAddressDeps): Promise<ReplicaAddress> {
  const { api, reach, clock, signal } = deps;
  if (reach === 'port-forward') return forwarded(port, deps);
  if (reach === 'auto') return (await foundAddress(port, deps)) ?? forwarded(port, deps);
  const pod = await readPod(deps);
  if (reach === 'pod') return { kind: 'tcp', host: podIp(pod), port, by: 'pod address' };
  if (reach === 'node-port') {
    const nodePort = await applyNodePort(api, pod, port, signal);
    if (nodePort === undefined || pod.status?.hostIP === undefined) throw unreachableError(deps, 'it has no port on a node');
    return { kind: 'tcp', host: pod.status.hostIP, port: nodePort, by: 'node port' };
  }
  const host = await applyLoadBalancer(api, pod, { port, clock, timeoutMs: loadBalancerMs, signal });
  if (host === undefined) throw unreachableError(deps, 'its load balancer got no address within 10 minutes');
  return { kind: 'tcp', host, port, by: 'load balancer' };
}

/** The first direct route that is proven to lead to the pod. Undefined also while the program does not listen. */
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
    // The Service may be forbidden, or no node port left.
    if (error instanceof SvcError && error.code !== 'SVC_NOT_LEADER') return undefined;
    throw error;
  }
  if (nodePort === undefined) return undefined;
  // Nodes know an existing Service already. Waiting again would leave no time for the port-forward.
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
  if (pod === undefined) throw unreachableError(deps, 'it is gone');
  return pod;
}

function podIp(pod: PodObject): string {
  const address = pod.status?.podIP;
  if (address === undefined)
    throw new SvcError('SVC_PLACE_FAILED', `The pod ${pod.metadata.namespace}/${pod.metadata.name} has no address.`);
  return address;
}

function unreachableError({ pod }: PodAddressDeps, why: string): SvcError {
  return new SvcError('SVC_PLACE_FAILED', `The pod ${pod.namespace}/${pod.name} cannot be reached: ${why}.`);
}

/** For hosts in the Kubernetes cluster's own network, ms. */
const dialTimeoutMs = 1_500;

/** An accepted connection may appear in the pod's connection table a moment later. */
const maxTableReads = 3;
const pauseMs = 100;

const closeTimeoutMs = 1_000;

interface ProofDeps {
  /** Content of the pod's /proc/net/tcp and tcp6. */
  readonly connectionsInPod: () => Promise<string>;
  readonly clock: Clock;
}

/**
 * Whether an address leads to the pod's port: a connection without data must appear in the pod's connection table. This
 * rules out another host with the same address in an overlapping network, and NAT that hides the client's address.
 */
async function leadsToPod(
  { host, port, podPort }: { readonly host: string; readonly port: number; readonly podPort: number },
  { connectionsInPod, clock }: ProofDeps,
): Promise<boolean> {
  let socket: Socket;
  try {
    socket = await dialReplica({ kind: 'tcp', host, port }, { timeoutMs: dialTimeoutMs, clock });
  } catch (error) {
    if (error instanceof DialError) return false;
    throw error;
  }
  socket.on('error', () => undefined);
  try {
    const { localAddress, localPort } = socket;
    if (localAddress === undefined || localPort === undefined) return false;
    for (let attempt = 0; attempt < maxTableReads; attempt += 1) {
      if (attempt > 0) await clock.sleep(pauseMs);
      if (hasConnection(await connectionsInPod(), podPort, { address: localAddress, port: localPort })) return true;
    }
    return false;
  } finally {
    part(socket, clock);
  }
}

/** A graceful end: a program that has sent something should not see a reset. */
function part(socket: Socket, clock: Clock): void {
  const cancel = clock.after(closeTimeoutMs, () => socket.destroy());
  socket.once('close', cancel);
  socket.resume();
  socket.end();
}
