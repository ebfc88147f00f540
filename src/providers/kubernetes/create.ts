import type { KubernetesContextConfig } from '../../domain/config.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { hasEnded, type Pod } from '../../kubernetes/pod.ts';
import { delayMs } from '../../shared/backoff.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import type { MachineSpec, Offer } from '../provider.ts';
import { podPoll, removeMachine } from './destroy.ts';
import { creationError, isDenied } from './errors.ts';
import { patienceOf, type KubernetesCluster } from './kubernetes-cluster.ts';
import { anchorManifest, podManifest, provisionTimeoutSeconds, type PodPlan } from './manifest.ts';
import { ownerOf, podNames, type MachineRef } from './names.ts';
import { nodeDemands } from './nodes/node-demands.ts';
import { chooseImage, forTask, withAssumedAutoscaler } from './pod-settings.ts';
import { mayReportReadiness } from './readiness.ts';

/** Input for creating a machine, or for its dry run. */
export interface Creation {
  readonly cluster: KubernetesCluster;
  readonly config: KubernetesContextConfig;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly ref: MachineRef;
  readonly command: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
}

/** What all pods of a machine share. */
export type MachinePlan = Omit<PodPlan, 'name' | 'rank' | 'anchor'>;

/** Throws the refusal if the Kubernetes cluster would not accept a pod. */
type TryPod = (plan: MachinePlan, name: string) => Promise<void>;

/** Throws a `ProviderRefusal` when there is no image for the context. */
export async function planMachine({ cluster, config, offer, spec, ref, command, signal }: Creation): Promise<MachinePlan> {
  const image = chooseImage(spec.imageId, offer.region, config.image);
  if ('why' in image) throw new ProviderRefusal('unsupported', 'whole-region', `The cluster ${offer.region} ${image.why}.`);
  const needsNodes = offer.accelerator !== undefined || offer.spot || config.autoscaler === undefined;
  const isReplica = spec.role === 'replica' && ownerOf(spec.tags) !== undefined;
  const [survey, hasReadinessGate] = await Promise.all([
    needsNodes ? cluster.survey(signal) : undefined,
    isReplica && mayReportReadiness(cluster.api, ref.namespace, signal),
  ]);
  const nodes = survey !== undefined && 'nodes' in survey ? survey.nodes : undefined;
  const assumed = withAssumedAutoscaler(config, nodes);
  return {
    config: assumed,
    offer,
    spec,
    demands: nodeDemands(offer, forTask(assumed, spec.providerConfig), nodes),
    namespace: ref.namespace,
    base: ref.base,
    image: image.image,
    command,
    hasReadinessGate,
  };
}

/** Callers wait at most this long, ms. `inspect` reports pods that wait longer. */
const longestWaitMs = 150_000;

/**
 * Creates a machine's pods and waits until each has a node. Idempotent across calls and processes. Throws a
 * `ProviderRefusal` when the Kubernetes cluster refuses them or has no room; then no pods remain.
 */
export async function createMachine(creation: Creation, tryPod: TryPod): Promise<void> {
  const { cluster, ref, signal } = creation;
  const names = podNames(ref.base);
  try {
    const before = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    // Pods that have ended, or are being removed, cannot serve a new request.
    if (before.some((pod) => isOver(pod))) await removeMachine(cluster, ref, creation.clock, signal);
    const existing = new Set(before.some((pod) => isOver(pod)) ? [] : before.map(({ metadata }) => metadata.name));
    const missing = names.filter((name) => !existing.has(name));
    if (missing.length > 0) await applyPods(creation, tryPod, names, missing);
    cluster.changed();
    await untilScheduled(creation, names);
  } catch (error) {
    const failure = creationError(error, creation.offer);
    if (failure instanceof ProviderRefusal) await removeIfAllowed(creation);
    throw isLoginFault(failure) ? loginRefusal(failure) : failure;
  }
}

/** A user may have lost the right to remove pods. The refusal stands: the same key finds the pods later. */
async function removeIfAllowed({ cluster, ref, clock, signal }: Creation): Promise<void> {
  try {
    await removeMachine(cluster, ref, clock, signal);
  } catch (error) {
    if (!isDenied(error)) throw error;
  }
}

const isLoginFault = (error: unknown): error is SvcError => error instanceof SvcError && error.code === 'SVC_CREDENTIALS';

/** A login belongs to one context. Without a scope the refusal would pause all contexts. */
function loginRefusal(error: SvcError): ProviderRefusal {
  return new ProviderRefusal('permission', 'whole-region', error.message, { hint: error.hint, cause: error });
}

function isOver(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined || hasEnded(pod);
}

async function applyPods(creation: Creation, tryPod: TryPod, names: readonly string[], missing: readonly string[]): Promise<void> {
  const { cluster, ref, signal } = creation;
  const plan = await planMachine(creation);
  // A dry run first: a refusal then comes before anything is created.
  await tryPod(plan, missing[0] ?? ref.base);
  const anchor = anchorManifest(plan);
  const made = await cluster.api.apply(pathOf(anchor), anchor, { signal });
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
  const startedAt = clock.monotonic();
  for (let polls = 1; ; polls += 1) {
    const pods = (await cluster.pods(ref.namespace, [ref.base], signal)).get(ref.base) ?? [];
    const waiting = pods.filter((pod) => !hasNode(pod));
    if (pods.length < names.length || pods.some(({ metadata }) => metadata.deletionTimestamp !== undefined))
      throw new ProviderRefusal('failed-launch', 'region', `A pod of ${ref.base} was removed from ${offer.region} before it had a node.`);
    if (waiting.length === 0) return;
    const patienceMs = (patienceOf(pods) ?? provisionTimeoutSeconds(config, spec)) * 1_000;
    const waitedMs = clock.monotonic() - startedAt;
    if (waitedMs >= patienceMs) throw noRoom(waiting, offer, patienceMs);
    if (waitedMs >= longestWaitMs) return;
    await clock.sleep(Math.min(delayMs(podPoll, polls), patienceMs - waitedMs), signal);
    signal?.throwIfAborted();
  }
}

function hasNode(pod: Pod): boolean {
  return pod.spec?.nodeName !== undefined || hasEnded(pod);
}

function noRoom(waiting: readonly Pod[], offer: Offer, patienceMs: number): ProviderRefusal {
  const condition = waiting.flatMap(({ status }) => status?.conditions ?? []).find(({ type }) => type === 'PodScheduled');
  const said = condition?.message ?? 'the scheduler says nothing of it';
  // Waiting longer cannot help: the volume claim does not exist.
  const volume = /persistentvolumeclaim "([^"]*)" not found/i.exec(said)?.[1];
  if (volume !== undefined) {
    const namespace = waiting[0]?.metadata.namespace ?? 'default';
    return new ProviderRefusal(
      'setup',
      'region',
      `The cluster ${offer.region} has no PersistentVolumeClaim ${volume} in the namespace ${namespace}: ${said}`,
    );
  }
  return new ProviderRefusal(
    'capacity',
    'region',
    `The cluster ${offer.region} had no node for a pod of ${offer.instanceType} within ${patienceMs / 1_000} s: ${said}`,
  );
}
