import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Cluster } from './cluster.ts';
import { anchorName, ownLabels, tagLabel, type MachineRef } from './names.ts';
import { runsNothing, type Pod } from '../../kubernetes/pod.ts';
import { pathOfAll, pathOfOne } from '../../kubernetes/paths.ts';

/** A pod's programs have so long to end, s: what was to be ended gently was, before. */
const graceSeconds = 10;
/** What is not gone after so long, ms, is left to its node, which is up. */
const goneMs = (graceSeconds + 15) * 1_000;
const firstLookMs = 60;
const longestLookMs = 1_000;

/**
 * Removes the pods of a machine, and waits until they are gone: they hold their room until then. A pod of a lost node is taken off the record without
 * asking that. Success when there is none. Tells whether the cluster has none of them any more.
 */
export async function removeMachine(cluster: Cluster, ref: MachineRef, clock: Clock, signal: AbortSignal | undefined): Promise<boolean> {
  // A machine by itself has an anchor of its own name; with it goes what else was made for it.
  const anchor = cluster.api.remove(pathOfOne('ConfigMap', ref.namespace, ref.base), { signal });
  const [areGone] = await Promise.all([removePods(cluster, ref, clock, signal), anchor]);
  cluster.changed();
  return areGone;
}

async function removePods(cluster: Cluster, ref: MachineRef, clock: Clock, signal: AbortSignal | undefined): Promise<boolean> {
  const startedAt = clock.monotonic();
  let pauseMs = firstLookMs;
  for (;;) {
    const pods = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    if (pods.length === 0) return true;
    await removeEach(cluster, pods, signal);
    if (clock.monotonic() - startedAt >= goneMs) return false;
    await clock.sleep(pauseMs, signal);
    signal?.throwIfAborted();
    pauseMs = Math.min(longestLookMs, pauseMs * 1.5);
  }
}

/** Asks for the removal of pods that nobody asked for yet, and forces it where the node cannot do its part, or has done it: some forget to say so for a minute. */
export async function removeEach(
  cluster: Pick<Cluster, 'api' | 'losses'>,
  pods: readonly Pod[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const losses = await cluster.losses(pods, signal);
  await Promise.all(
    pods.map(async (pod) => {
      const { name, namespace = '', uid, deletionTimestamp } = pod.metadata;
      const node = pod.spec?.nodeName;
      // Without a node nothing runs yet.
      const isForced = node === undefined || losses.has(node) || (deletionTimestamp !== undefined && runsNothing(pod));
      if (deletionTimestamp !== undefined && !isForced) return;
      await cluster.api.remove(pathOfOne('Pod', namespace, name), { uid, gracePeriodSeconds: isForced ? 0 : graceSeconds, signal });
    }),
  );
}

/** Removes what was made in a namespace for an owner beside its machines. Throws while there are pods, which it asks to end. */
export async function removeOwned(cluster: Cluster, namespace: string, ownerKey: string, signal: AbortSignal | undefined): Promise<void> {
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
