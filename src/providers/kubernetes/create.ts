import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { Offer } from '../provider.ts';
import { planMachine, type Creation } from './creation.ts';
import { removeMachine } from './destroy.ts';
import { creationError } from './errors.ts';
import { anchorManifest, podManifest, provisionTimeoutSeconds } from './manifest.ts';
import { podNames } from './names.ts';
import { hasEnded, type Pod } from '../../kubernetes/pod.ts';
import type { ConfigMap } from './objects.ts';
import type { Rehearsals } from './rehearsals.ts';

/** Callers wait for an answer so long at most, ms; where pods may wait for longer, that is watched afterwards. */
const longestWaitMs = 150_000;
/** Between two looks whether pods were given a node, ms: the first is quick, as schedulers mostly are. */
const firstLookMs = 60;
const longestLookMs = 1_000;

/**
 * Makes the pods of a machine, once whoever asks and however often, and waits until each has a node. Throws a `PlaceRefusal` in the cluster's own words
 * when they are refused or there is no room, and leaves nothing behind then.
 */
export async function createMachine(creation: Creation, rehearsals: Rehearsals): Promise<void> {
  const { cluster, ref, signal } = creation;
  const names = podNames(ref.base);
  const before = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
  // What has ended is of no use to who asks anew.
  if (before.some((pod) => isOver(pod))) await removeMachine(cluster, ref, creation.clock, signal);
  const there = new Set(before.some((pod) => isOver(pod)) ? [] : before.map(({ metadata }) => metadata.name));
  const missing = names.filter((name) => !there.has(name));
  try {
    if (missing.length > 0) await applyPods(creation, rehearsals, names, missing);
    cluster.changed();
    await untilScheduled(creation, names);
  } catch (error) {
    const told = creationError(error, creation.offer);
    if (told instanceof PlaceRefusal) await removeMachine(cluster, ref, creation.clock, signal);
    throw told;
  }
}

function isOver(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined || hasEnded(pod);
}

async function applyPods(creation: Creation, rehearsals: Rehearsals, names: readonly string[], missing: readonly string[]): Promise<void> {
  const { cluster, ref, signal } = creation;
  const plan = await planMachine(creation);
  // What is refused is refused before anything is made.
  await rehearsals.once(creation, plan, missing[0] ?? ref.base);
  const anchor = anchorManifest(plan);
  const made = await cluster.api.apply<ConfigMap>(pathOf(anchor), anchor, { signal });
  const owner = { name: made.metadata.name, uid: made.metadata.uid };
  const applied = await Promise.allSettled(
    missing.map((name) => {
      const pod = podManifest({ ...plan, name, rank: names.indexOf(name), anchor: owner });
      return cluster.api.apply<Pod>(pathOfOne('Pod', ref.namespace, name), pod, { signal });
    }),
  );
  for (const result of applied) if (result.status === 'rejected') throw result.reason;
}

async function untilScheduled(creation: Creation, names: readonly string[]): Promise<void> {
  const { cluster, config, offer, spec, ref, clock, signal } = creation;
  const patienceMs = provisionTimeoutSeconds(config, spec) * 1_000;
  const startedAt = clock.monotonic();
  let pauseMs = firstLookMs;
  for (;;) {
    const pods = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    const waiting = pods.filter((pod) => !hasNode(pod));
    if (pods.length < names.length || pods.some(({ metadata }) => metadata.deletionTimestamp !== undefined))
      throw new PlaceRefusal('capacity', 'region', `A pod of ${ref.base} was removed from ${offer.region} before it had a node.`);
    if (waiting.length === 0) return;
    const waitedMs = clock.monotonic() - startedAt;
    if (waitedMs >= patienceMs) throw noRoom(waiting, offer, patienceMs);
    if (waitedMs >= longestWaitMs) return;
    await clock.sleep(Math.min(pauseMs, patienceMs - waitedMs), signal);
    signal?.throwIfAborted();
    pauseMs = Math.min(longestLookMs, pauseMs * 1.5);
  }
}

function hasNode(pod: Pod): boolean {
  return pod.spec?.nodeName !== undefined || hasEnded(pod);
}

function noRoom(waiting: readonly Pod[], offer: Offer, patienceMs: number): PlaceRefusal {
  const condition = waiting.flatMap(({ status }) => status?.conditions ?? []).find(({ type }) => type === 'PodScheduled');
  const said = condition?.message ?? 'the scheduler says nothing of it';
  // Waiting for what nobody is going to make is no want of room.
  const volume = /persistentvolumeclaim "([^"]*)" not found/i.exec(said)?.[1];
  if (volume !== undefined) {
    const namespace = waiting[0]?.metadata.namespace ?? 'default';
    return new PlaceRefusal(
      'setup',
      'region',
      `The cluster ${offer.region} has no PersistentVolumeClaim ${volume} in the namespace ${namespace}: ${said}`,
    );
  }
  return new PlaceRefusal(
    'capacity',
    'region',
    `The cluster ${offer.region} had no node for a pod of ${offer.instanceType} within ${patienceMs / 1_000} s: ${said}`,
  );
}
