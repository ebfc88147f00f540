import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { KubernetesCluster } from './kubernetes-cluster.ts';
import { needsForcedDeletion } from './nodes/node-health.ts';
import { anchorName, ownLabels, tagLabel, type MachineRef } from './names.ts';
import { runsNothing, type Pod } from '../../kubernetes/pod.ts';
import { pathOfAll, pathOfOne } from '../../kubernetes/paths.ts';

/** For a pod's programs to end, s. Replicas have drained before. */
const graceSeconds = 10;
/** After this time, ms, svc leaves a pod to its ready node. */
const goneMs = (graceSeconds + 15) * 1_000;

/** Backoff of polls for a machine's pods. Schedulers and nodes mostly take milliseconds. */
export const podPoll: Backoff = { firstMs: 60, longestMs: 1_000, factor: 1.5 };

/**
 * Removes a machine's pods and waits until they are gone: until then they occupy their room. Forces the deletion on a
 * silent node, unless silence is widespread. Returns whether no pod of the machine exists any more.
 */
export async function removeMachine(
  cluster: KubernetesCluster,
  ref: MachineRef,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  // A machine without an owner has an anchor of its own name, whose removal removes its other resources.
  const anchor = cluster.api.remove(pathOfOne('ConfigMap', ref.namespace, ref.base), { signal });
  const [areGone] = await Promise.all([removePods(cluster, ref, clock, signal), anchor]);
  cluster.changed();
  return areGone;
}

async function removePods(cluster: KubernetesCluster, ref: MachineRef, clock: Clock, signal: AbortSignal | undefined): Promise<boolean> {
  const startedAt = clock.monotonic();
  for (let polls = 1; ; polls += 1) {
    const pods = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    if (pods.length === 0) return true;
    await removeEach(cluster, pods, signal);
    if (clock.monotonic() - startedAt >= goneMs) return false;
    await clock.sleep(delayMs(podPoll, polls), signal);
    signal?.throwIfAborted();
  }
}

/** Forces the removal where the node cannot end the pod or has ended it: some nodes report that a minute late. */
export async function removeEach(
  cluster: Pick<KubernetesCluster, 'api' | 'troubles'>,
  pods: readonly Pod[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const troubles = await cluster.troubles(pods, signal);
  await Promise.all(
    pods.map(async (pod) => {
      const { name, namespace = '', uid, deletionTimestamp } = pod.metadata;
      const node = pod.spec?.nodeName;
      // A pod without a node runs nothing yet.
      const isForced =
        node === undefined || needsForcedDeletion(troubles.get(node)) || (deletionTimestamp !== undefined && runsNothing(pod));
      if (deletionTimestamp !== undefined && !isForced) return;
      await cluster.api.remove(pathOfOne('Pod', namespace, name), { uid, gracePeriodSeconds: isForced ? 0 : graceSeconds, signal });
    }),
  );
}

/** Removes an owner's resources beside machines. Throws while there are pods, after it has requested their removal. */
export async function removeOwned(
  cluster: KubernetesCluster,
  namespace: string,
  ownerKey: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const labels = { [ownLabels.owned]: tagLabel(ownerKey) };
  const { items } = await cluster.api.list<Pod>(pathOfAll('Pod', namespace), { labels, signal });
  if (items.length > 0) {
    await removeEach(cluster, items, signal);
    const names = items.map(({ metadata }) => metadata.name).join(', ');
    throw new SvcError('SVC_PLACE_FAILED', `The cluster ${cluster.context} still has pods that are ending: ${names}.`);
  }
  const services = await cluster.api.list(pathOfAll('Service', namespace), { labels, signal });
  for (const { metadata } of services.items) await cluster.api.remove(pathOfOne('Service', namespace, metadata.name), { signal });
  await cluster.api.remove(pathOfOne('ConfigMap', namespace, anchorName(ownerKey)), { signal });
}
