import { balancerPodLabels } from '../../domain/balancer-host.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import type { WatchedList } from '../../kubernetes/watched-list.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Fence } from '../../shared/fence.ts';
import type { Logger } from '../../shared/log.ts';
import type { Random } from '../../shared/random.ts';
import type { BalancerPod } from './pods.ts';

/** What watching the balancer hosts of a cluster needs. */
export interface WatchPodsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly fence: Fence;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The pods of balancer hosts, kept up from within the cluster. */
export interface WatchedPods {
  readonly api: KubeApi;
  readonly pods: WatchedList<BalancerPod>;
}

/** Watches the pods of balancer hosts; `namespace`: instead of the one of this very pod. Kubernetes' client is only loaded where it is used. */
export async function watchPods(namespace: string | undefined, { clock, random, fence, log, signal }: WatchPodsDeps): Promise<WatchedPods> {
  const { inClusterContext, openKubeApi } = await import('../../kubernetes/contexts.ts');
  const { WatchedList: LazyList } = await import('../../kubernetes/watched-list.ts');
  const api = openKubeApi(inClusterContext, { fence, clock, random, namespace });
  const onTrouble = (why: string | undefined): void =>
    why === undefined ? log.info('the API server answers again') : log.warn({ why }, 'the API server does not answer');
  const deps = { api, clock, random, signal, onTrouble };
  return { api, pods: new LazyList<BalancerPod>(pathOfAll('Pod', api.namespace), { labels: balancerPodLabels.role }, deps) };
}
