import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { KubernetesCluster } from './kubernetes-cluster.ts';
import { needsForcedDeletion } from './nodes/node-health.ts';
import { anchorName, ownLabels, tagLabel, type MachineRef } from './names.ts';
import { runsNothing, type Pod } from '../../kubernetes/pod.ts';
import { pathOfAll, pathOfOne } from '../../kubernetes/paths.ts';

/** For a pod's programs to end, s. Replicas that had to drain have drained before. */
const graceSeconds = 10;
/** After this time, ms, a ready node ends its pod alone. */
const goneMs = (graceSeconds + 15) * 1_000;

/** Polls of a machine's pods while it is created or removed. Schedulers and nodes mostly take milliseconds. */
export const podPoll: Backoff = { firstMs: 60, longestMs: 1_000, factor: 1.5 };

/**
 * Removes a machine's pods and waits until they are gone, because they occupy their room until then. A pod of a silent
 * node is deleted without the node's confirmation, unless the silence is widespread: then the node ends the pod when it
 * reports again. Returns whether the Kubernetes cluster has no pod of the machine any more.
 */
export async function removeMachine(
  cluster: KubernetesCluster,
  ref: MachineRef,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  // The anchor of a machine without an owner has the machine's name. Its removal removes the other resources.
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

/**
 * Requests the removal of pods. Forces it where the node cannot end the pod or has ended it: some nodes report the end
 * up to a minute late.
 */
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
      // It runs nothing yet.
      const isForced =
        node === undefined || needsForcedDeletion(troubles.get(node)) || (deletionTimestamp !== undefined && runsNothing(pod));
      if (deletionTimestamp !== undefined && !isForced) return;
      await cluster.api.remove(pathOfOne('Pod', namespace, name), { uid, gracePeriodSeconds: isForced ? 0 : graceSeconds, signal });
    }),
  );
}

/** Removes an owner's resources beside machines. While there are pods, requests their removal and throws. */
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
