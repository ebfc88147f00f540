import { hostOfHolder } from '../../domain/leadership.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { readKubernetesLease } from '../../kubernetes/lease.ts';
import { podTrouble, troubleText } from '../../kubernetes/pod-trouble.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import { haNames } from './names.ts';
import { podSelector, type PodRole } from './object-parts.ts';
import type { KubernetesSite } from './site.ts';

/** The controller that leads, or led last. */
export interface Leader {
  readonly pod: string;
  readonly term: number;
}

/** Reads the leader from the lease; undefined when there is none. */
export async function findLeader(api: KubeApi, { namespace }: KubernetesSite, signal: AbortSignal): Promise<Leader | undefined> {
  const { holder, term } = await readKubernetesLease(api, namespace, haNames.lease, signal);
  return holder === null || holder === '' ? undefined : { pod: hostOfHolder(holder), term };
}

/** The pods of one role. */
export async function podsOf(api: KubeApi, { namespace }: KubernetesSite, role: PodRole, signal: AbortSignal): Promise<readonly Pod[]> {
  const { items } = await api.list<Pod>(pathOfAll('Pod', namespace), { labels: podSelector(role), signal });
  return items;
}

/** Whether a pod is ready and not ending. */
export function isReady({ metadata, status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return metadata.deletionTimestamp === undefined && ready?.status === 'True';
}

/** The problem; undefined when the pod works or has none yet. `kind` stays while Kubernetes' message changes. */
export function troubleOf(pod: Pod): { readonly kind: string; readonly text: string; readonly isLasting: boolean } | undefined {
  const trouble = podTrouble(pod);
  if (trouble === undefined) return undefined;
  const { kind, reason, container } = trouble;
  const isCrashing = reason === 'CrashLoopBackOff' && (container?.restartCount ?? 0) >= crashesThatSay;
  return { kind, text: troubleText(trouble), isLasting: kind === 'setup' || isCrashing };
}

/** First crashes do not count: a controller that cannot reach its database at the start ends and is restarted. */
const crashesThatSay = 4;
