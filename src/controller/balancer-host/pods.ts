import { balancerPodLabels, type BalancerHostMember } from '../../domain/balancer-host.ts';
import type { KubeObject } from '../../kubernetes/kube-api.ts';

/** What of a pod is of interest here. */
export interface BalancerPod extends KubeObject {
  readonly status?: { readonly phase?: string; readonly podIP?: string };
}

/** Those that can be spoken to, by name; also one that is about to end, as it still has requests. */
export function membersOf(pods: readonly BalancerPod[], port: number): readonly BalancerHostMember[] {
  return pods
    .flatMap(({ metadata: { name }, status }) =>
      status?.phase === 'Running' && status.podIP !== undefined ? [{ name, host: status.podIP, port }] : [],
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether requests are led to a pod. */
export function isServing({ metadata: { labels } }: BalancerPod): boolean {
  return labels?.[balancerPodLabels.serving] === 'true';
}
