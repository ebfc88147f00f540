import type { Pod } from '../../kubernetes/pod.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import type { PolicyVersion } from '../../kubernetes/policy-version.ts';
import { SvcError } from '../../shared/errors.ts';
import { isDenied, isReadyNode, type NodeObject } from './cluster-facts.ts';
import type { HighAvailabilityDesign } from './design.ts';
import { podsOf } from './leader.ts';
import { podRoles } from './object-parts.ts';
import { isMarked, isOfWholeCluster, readObject, objectsOf, type NamedObject } from './ownership.ts';
import type { KubernetesDeps, KubernetesSite } from './site.ts';

/** Limit for pods to end, ms: open requests may finish. Pods on a lost node never end. */
const goneTimeoutMs = 120_000;
/** A pod on a node that does not answer counts as gone after this time, ms. It is longer than a lease. */
const lostNodeMs = 15_000;
const pollMs = 500;

/**
 * Removes a controller's objects and waits until its pods are gone. Each object is read by name: manifests applied by
 * hand have no anchor. Objects without this controller's label stay. Throws SVC_CLEANUP_FAILED when a pod does not end;
 * with `force` it counts as gone, because its node may be.
 */
export async function removeObjects(site: KubernetesSite, key: string, force: boolean, deps: KubernetesDeps): Promise<void> {
  const objects = allObjects(site, key);
  deps.onStep('Ending the controller and its balancers');
  // Objects that create other objects first.
  for (const object of objects.filter(({ kind }) => kind === 'Deployment')) await remove(object, key, deps);
  await waitUntilPodsGone(site, key, force, deps);
  deps.onStep('Removing the objects of the controller');
  for (const object of objects.filter(({ kind }) => kind !== 'Deployment')) await remove(object, key, deps);
}

/** Last applied first. An object with two possible versions is listed in both. */
function allObjects(site: KubernetesSite, key: string): readonly NamedObject[] {
  const all = (['policy/v1', 'policy/v1beta1'] as const).flatMap((version) => objectsOf(namesOnly(site, key, version), noSecrets));
  return [...new Map(all.map((object) => [pathOf(object), object])).values()].toReversed();
}

async function waitUntilPodsGone(site: KubernetesSite, key: string, force: boolean, deps: KubernetesDeps): Promise<void> {
  const { api, clock, signal } = deps;
  const begunAt = clock.monotonic();
  for (;;) {
    const both = await Promise.all(podRoles.map((role) => podsOf(api, site, role, signal)));
    const pods = both.flat().filter((pod) => isMarked(pod, key));
    if (pods.length === 0) return;
    const waitedMs = clock.monotonic() - begunAt;
    if (waitedMs > goneTimeoutMs && !force) throw podsRemain(pods);
    for (const pod of pods) {
      // No kubelet will confirm their end. A controller there has lost its lease by now.
      const isForced = waitedMs > goneTimeoutMs || (waitedMs > lostNodeMs && (await isOnLostNode(pod, api, signal)));
      if (isForced) await forceRemovePod(site, pod, deps);
    }
    await clock.sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

async function forceRemovePod({ namespace }: KubernetesSite, { metadata }: Pod, { api, signal, onStep }: KubernetesDeps): Promise<void> {
  onStep(`Taking pod ${metadata.name} for gone, as its node is`);
  await api.remove(pathOfOne('Pod', namespace, metadata.name), { gracePeriodSeconds: 0, uid: metadata.uid, signal });
}

function podsRemain(pods: readonly Pod[]): SvcError {
  const names = pods.map(({ metadata }) => metadata.name).join(', ');
  return new SvcError('SVC_CLEANUP_FAILED', `Pods of the controller do not end: ${names}.`, {
    hint: 'Their nodes may be gone. To take them for gone: svc controller down --purge',
  });
}

/** An ending pod on a node that does not answer or exist. False when this user may not read nodes. */
async function isOnLostNode({ metadata, spec }: Pod, api: KubeApi, signal: AbortSignal): Promise<boolean> {
  if (metadata.deletionTimestamp === undefined || spec?.nodeName === undefined) return false;
  try {
    const node = await api.get<NodeObject>(pathOfOne('Node', undefined, spec.nodeName), { signal });
    return node === undefined || !isReadyNode(node);
  } catch (error) {
    if (isDenied(error)) return false;
    throw error;
  }
}

/** Removes exactly the object that was read: another object may have taken its name meanwhile. */
async function remove(object: NamedObject, key: string, { api, signal, onStep }: KubernetesDeps): Promise<void> {
  const there = await readObject(object, api, signal);
  if (there === undefined) return;
  if (!isMarked(there, key)) return onStep(`${object.kind} ${object.metadata.name} stays: it is not of this controller`);
  try {
    await api.remove(pathOf(object), { propagation: 'Background', uid: there.metadata.uid, signal });
  } catch (error) {
    // Permissions for the whole Kubernetes cluster may not exist, or this user may not remove them.
    if (!isOfWholeCluster(object) || !isDenied(error)) throw error;
  }
}

const noSecrets = { token: '', files: [], environment: {} } as const;

/** Only the objects' names matter. */
function namesOnly({ context, namespace }: KubernetesSite, key: string, version: PolicyVersion): HighAvailabilityDesign {
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
