import type { Pod } from '../../kubernetes/pod.ts';
import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { isDenied } from './cluster-facts.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { podsOf } from './leader.ts';
import { isMarked, isOfWholeCluster, lookAt, objectsOf, type NamedObject } from './ownership.ts';
import type { ClusterSite } from './site.ts';

/** Pods may take so long to end, ms: requests under way are let through. Those on a node that is lost never do. */
const goneTimeoutMs = 120_000;
/** A pod on a node that does not answer is taken for gone after so long, ms: longer than a lease. */
const lostNodeMs = 15_000;
const pollMs = 500;

/**
 * Removes every object of the controller with that key, and sees its pods gone. What was made by hand from manifests belongs to no anchor, so each object is
 * looked at by its name; one without the mark of this controller stays. Throws SVC_CLEANUP_FAILED when a pod does not end; with `force` it is taken for gone,
 * as its node may be.
 */
export async function removeObjects(site: ClusterSite, key: string, force: boolean, deps: ClusterDeps): Promise<void> {
  const objects = allObjects(site, key);
  deps.onStep('Ending the controller and its balancers');
  // What would go on making things goes first.
  for (const object of objects.filter(({ kind }) => kind === 'Deployment')) await remove(object, key, deps);
  await seePodsGone(site, key, force, deps);
  deps.onStep('Removing the objects of the controller');
  for (const object of objects.filter(({ kind }) => kind !== 'Deployment')) await remove(object, key, deps);
}

/** The last one first; of either version of those that clusters have in one or the other. */
function allObjects(site: ClusterSite, key: string): readonly NamedObject[] {
  const all = (['policy/v1', 'policy/v1beta1'] as const).flatMap((version) => objectsOf(namesOnly(site, key, version), noSecrets));
  return [...new Map(all.map((object) => [pathOf(object), object])).values()].toReversed();
}

async function seePodsGone(site: ClusterSite, key: string, force: boolean, deps: ClusterDeps): Promise<void> {
  const { api, clock, signal } = deps;
  const begunAt = clock.monotonic();
  for (;;) {
    const both = await Promise.all((['controller', 'balancer'] as const).map((role) => podsOf(api, site, role, signal)));
    const pods = both.flat().filter((pod) => isMarked(pod, key));
    if (pods.length === 0) return;
    const waitedMs = clock.monotonic() - begunAt;
    if (waitedMs > goneTimeoutMs && !force) throw podsStay(pods);
    for (const pod of pods) {
      // Nobody will ever say that these ended. Whatever goes on there has lost its lease by now.
      const isTakenForGone = waitedMs > goneTimeoutMs || (waitedMs > lostNodeMs && (await isOnLostNode(pod, api, signal)));
      if (isTakenForGone) await takeForGone(site, pod, deps);
    }
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

async function takeForGone({ namespace }: ClusterSite, { metadata }: Pod, { api, signal, onStep }: ClusterDeps): Promise<void> {
  onStep(`Taking pod ${metadata.name} for gone, as its node is`);
  await api.remove(pathOfOne('Pod', namespace, metadata.name), { gracePeriodSeconds: 0, uid: metadata.uid, signal });
}

function podsStay(pods: readonly Pod[]): SvcError {
  const names = pods.map(({ metadata }) => metadata.name).join(', ');
  return new SvcError('SVC_CLEANUP_FAILED', `Pods of the controller do not end: ${names}.`, {
    hint: 'Their nodes may be gone. To take them for gone: svc controller down --purge',
  });
}

/** Whether a pod that is to end is on a node that does not answer any more, or is not there. Who may not look at nodes does not know. */
async function isOnLostNode({ metadata, spec }: Pod, api: KubeApi, signal: AbortSignal): Promise<boolean> {
  if (metadata.deletionTimestamp === undefined || spec?.nodeName === undefined) return false;
  try {
    const node = await api.get<NodeObject>(pathOfOne('Node', undefined, spec.nodeName), { signal });
    return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') !== true;
  } catch (error) {
    if (isDenied(error)) return false;
    throw error;
  }
}

interface NodeObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Removes the very object that was looked at, if it is ours: another one may have got its name meanwhile. */
async function remove(object: NamedObject, key: string, { api, signal, onStep }: ClusterDeps): Promise<void> {
  const there = await lookAt(object, api, signal);
  if (there === undefined) return;
  if (!isMarked(there, key)) return onStep(`${object.kind} ${object.metadata.name} stays: it is not of this controller`);
  try {
    await api.remove(pathOf(object), { propagation: 'Background', uid: there.metadata.uid, signal });
  } catch (error) {
    // Rights in the whole cluster may never have been given, or be somebody else's to take.
    if (!isOfWholeCluster(object) || !isDenied(error)) throw error;
  }
}

const noSecrets = { token: '', files: [], environment: {} } as const;

/** A design of which only the names of its objects count. */
function namesOnly(
  { context, namespace }: ClusterSite,
  key: string,
  version: HighAvailabilityDesign['policyVersion'],
): HighAvailabilityDesign {
  return {
    key,
    context,
    namespace,
    image: '',
    imagePullSecrets: [],
    database: 'sqlite',
    cpus: undefined,
    memoryGb: undefined,
    diskGb: 0,
    storageClass: undefined,
    balancers: 1,
    endpointService: 'ClusterIP',
    publicHost: '',
    hourlyUsd: 0,
    labels: {},
    annotations: {},
    policyVersion: version,
    replicaRules: [],
    clusterReadRules: [{ apiGroups: [], resources: [], verbs: [] }],
  };
}
