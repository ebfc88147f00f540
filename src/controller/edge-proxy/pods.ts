import { type EdgeProxyMember, edgeProxyPodLabels } from '../../domain/edge-proxy/edge-proxy.ts';
import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import type { WatchedList } from '../../kubernetes/watched-list.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Fence } from '../../shared/fence.ts';
import type { Logger } from '../../shared/log.ts';
import type { Random } from '../../shared/random.ts';

/** The fields of a pod that the edge proxies' code reads. */
export interface BalancerPod extends KubeObject {
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
  };
}

/** The reachable edge proxies, by name. Includes terminating pods, as they still have requests. */
export function membersOf(pods: readonly BalancerPod[], port: number): readonly EdgeProxyMember[] {
  return pods
    .flatMap(({ metadata: { name }, status }) =>
      status?.phase === 'Running' && status.podIP !== undefined ? [{ name, host: status.podIP, port }] : [],
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether the pod's label puts it into the Service. */
export function isServing({ metadata: { labels } }: BalancerPod): boolean {
  return labels?.[edgeProxyPodLabels.serving] === 'true';
}

/** Whether the pod's label says that no other pod serves. */
export function isAlone({ metadata: { labels } }: BalancerPod): boolean {
  return labels?.[edgeProxyPodLabels.alone] === 'true';
}

/** Dependencies of watching the edge proxies of a Kubernetes cluster. */
export interface WatchPodsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly fence: Fence;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

interface WatchedPods {
  readonly api: KubeApi;
  readonly pods: WatchedList<BalancerPod>;
}

/** Watches the pods of the edge proxies, by default in this pod's namespace. Loads the Kubernetes client lazily. */
export async function watchPods(namespace: string | undefined, { clock, random, fence, log, signal }: WatchPodsDeps): Promise<WatchedPods> {
  const { inClusterContext, openKubeApi } = await import('../../kubernetes/contexts.ts');
  const { WatchedList: LazyList } = await import('../../kubernetes/watched-list.ts');
  const api = openKubeApi(inClusterContext, { fence, clock, random, namespace });
  const onTrouble = (why: string | undefined): void =>
    why === undefined ? log.info('the API server answers again') : log.warn({ why }, 'the API server does not answer');
  const deps = { api, clock, random, signal, onTrouble };
  return { api, pods: new LazyList<BalancerPod>(pathOfAll('Pod', api.namespace), { labels: edgeProxyPodLabels.role }, deps) };
}
