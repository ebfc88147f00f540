import type { BalancerHostMember, BalancerHosts } from '../../domain/balancer-host.ts';
import type { WatchedList } from '../../kubernetes/watched-list.ts';
import { membersOf, type BalancerPod } from './pods.ts';
import { watchPods, type WatchPodsDeps } from './watch-pods.ts';

/** Calls back with the balancer hosts as soon as they are known, and whenever they change, until the signal aborts. */
export async function findMembers(
  { namespace, members, port }: BalancerHosts,
  deps: WatchPodsDeps,
  onMembers: (members: readonly BalancerHostMember[]) => void,
): Promise<void> {
  if (namespace === undefined) return onMembers((members ?? []).map((host) => ({ name: host, host, port })));
  const { pods } = await watchPods(namespace, deps);
  await tellMembers(pods, port, deps.signal, onMembers);
}

/** The same of pods that are watched; settles when they are known, or will not be as the watch has ended. */
export async function tellMembers(
  pods: WatchedList<BalancerPod>,
  port: number,
  signal: AbortSignal,
  onMembers: (members: readonly BalancerHostMember[]) => void,
): Promise<void> {
  await Promise.race([pods.synced, pods.ended]);
  if (signal.aborted) return;
  const tell = (): void => onMembers(membersOf(pods.items, port));
  pods.onChange(tell);
  tell();
}
