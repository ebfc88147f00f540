import { isDeepStrictEqual } from 'node:util';
import { drainRules, readinessRule } from '../../domain/kubernetes/kubernetes-role.ts';
import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import { findAnchor, isDenied, outsideHost } from './cluster-facts.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets, OwnerReference } from './design.ts';
import { endpointsService, manifests } from './manifests.ts';
import { haNames, ownedLabel } from './names.ts';
import { ownedBy } from './object-parts.ts';
import { isMarked, isOfWholeCluster, readObject, refuseForeign } from './ownership.ts';
import { anchorObject } from './settings-objects.ts';
import { kubectlAt, type KubernetesDeps, type KubernetesSite } from './site.ts';
import { refuseWithoutStorage } from './storage-class.ts';

/** Limit for a load balancer's address, ms. Until then endpoints have their name inside the Kubernetes cluster. */
const addressTimeoutMs = 180_000;
const addressPollMs = 1_000;

/** Limit for objects under removal to disappear and be created again, ms: a volume waits for its last pod. */
const wholeTimeoutMs = 120_000;
const wholePollMs = 1_000;

/**
 * Applies the objects, each in one step, and returns the resulting facts. If the anchor is removed meanwhile,
 * Kubernetes removes its dependents, and all objects are applied again. Safe to repeat after a crash. Throws
 * SVC_CONTROLLER_KIND, before any change, when another owner has an object with one of svc's names, and
 * SVC_CONTROLLER_START when no storage can provide its volume.
 */
export async function applyDesign(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets,
  deps: KubernetesDeps,
): Promise<HighAvailabilityDesign> {
  const { clock, signal, onStep } = deps;
  await refuseForeign(design, secrets, deps);
  await refuseWithoutStorage(design, deps);
  onStep(`Making the objects of the controller in ${design.context}/${design.namespace}`);
  const deadline = clock.monotonic() + wholeTimeoutMs;
  for (;;) {
    const { addressed, objects, owner, missing } = await applyOnce(design, secrets, deps);
    if (missing.length === 0) {
      await prune(objects, { owner, key: design.key }, deps);
      return addressed;
    }
    if (clock.monotonic() > deadline) throw keepsGoing(design, missing);
    onStep(`Making again what was removed meanwhile: ${missing.join(', ')}`);
    await clock.sleep(wholePollMs, signal);
    signal.throwIfAborted();
  }
}

interface Applied {
  readonly addressed: HighAvailabilityDesign;
  readonly objects: readonly KubeDraft[];
  readonly owner: OwnerReference;
  /** Names of objects that do not exist, or are being removed. */
  readonly missing: readonly string[];
}

/** Applies the anchor first, because the others belong to it. Returns objects that are missing or will be removed. */
async function applyOnce(design: HighAvailabilityDesign, secrets: HighAvailabilitySecrets, deps: KubernetesDeps): Promise<Applied> {
  const anchor = await apply(anchorObject(design), deps);
  const owner: OwnerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: haNames.anchor, uid: anchor.metadata.uid };
  const addressed = design.endpointService === 'LoadBalancer' ? await withAddress(design, owner, deps) : design;
  const objects = manifests(addressed, secrets, owner);
  for (const object of objects) await applyAsAllowed(object, deps);
  return { addressed, objects, owner, missing: await missingOf(objects, owner, deps) };
}

/**
 * Removes what an earlier version of svc or of the configuration made and this one does not need: objects in the
 * namespace that have the controller's label and belong to its anchor. Volumes stay, because they hold data. A user who
 * may not list a kind keeps its objects.
 */
async function prune(
  objects: readonly KubeDraft[],
  { owner, key }: { readonly owner: OwnerReference; readonly key: string },
  { api, signal, onStep }: KubernetesDeps,
): Promise<void> {
  const paths = new Set(objects.map(pathOf));
  const kinds = new Map(objects.filter((object) => !isOfWholeCluster(object)).map((object) => [collectionOf(object), object.kind]));
  for (const [collection, kind] of kinds) {
    if (kind === 'PersistentVolumeClaim') continue;
    for (const { metadata } of await listAllowed(collection, key, { api, signal })) {
      const path = `${collection}/${encodeURIComponent(metadata.name)}`;
      if (paths.has(path) || metadata.ownerReferences?.some(({ uid }) => uid === owner.uid) !== true) continue;
      onStep(`Removing ${kind} ${metadata.name}, which is not needed any more`);
      await api.remove(path, { propagation: 'Background', uid: metadata.uid, signal });
    }
  }
}

async function listAllowed(collection: string, key: string, { api, signal }: Pick<KubernetesDeps, 'api' | 'signal'>) {
  try {
    return (await api.list(collection, { labels: { [ownedLabel]: key }, signal })).items;
  } catch (error) {
    if (isDenied(error)) return [];
    throw error;
  }
}

const collectionOf = (object: KubeDraft): string => pathOf(object).replace(/\/[^/]*$/, '');

async function missingOf(
  objects: readonly KubeDraft[],
  owner: OwnerReference,
  { api, signal }: KubernetesDeps,
): Promise<readonly string[]> {
  const found = await Promise.all(objects.map((object) => readObject(object, api, signal)));
  return objects.flatMap((object, index) => {
    const there = found[index]?.metadata;
    const isAnchor = object.kind === owner.kind && object.metadata.name === owner.name;
    const isKept = there !== undefined && there.deletionTimestamp === undefined && (!isAnchor || there.uid === owner.uid);
    return isKept || isOfWholeCluster(object) ? [] : [`${object.kind} ${object.metadata.name}`];
  });
}

function keepsGoing(site: HighAvailabilityDesign, missing: readonly string[]): SvcError {
  return new SvcError('SVC_CONTROLLER_START', `Objects of the controller are removed again and again: ${missing.join(', ')}.`, {
    hint: `Find out who removes them (${kubectlAt(site)} get events), and run the command again.`,
  });
}

/** The controller's settings contain the address, so it must be known first. */
async function withAddress(design: HighAvailabilityDesign, owner: OwnerReference, deps: KubernetesDeps): Promise<HighAvailabilityDesign> {
  const { api, clock, signal, onStep } = deps;
  await apply(ownedBy(endpointsService(design), owner), deps);
  const deadline = clock.monotonic() + addressTimeoutMs;
  for (;;) {
    const publicHost = await outsideHost(api, design, 'LoadBalancer', signal);
    if (publicHost !== undefined) return { ...design, publicHost };
    if (clock.monotonic() > deadline) {
      onStep('The load balancer has no address yet; svc controller upgrade looks for it again');
      return design;
    }
    onStep('Waiting for the address of the load balancer');
    await clock.sleep(addressPollMs, signal);
    signal.throwIfAborted();
  }
}

async function applyAsAllowed(object: KubeDraft, deps: KubernetesDeps): Promise<void> {
  try {
    await apply(object, deps);
  } catch (error) {
    if (!isDenied(error)) throw error;
    if (await applyWithout(object, deps)) return;
    // Without permission to read nodes, the controller works, but cannot check their free resources in advance.
    if (!isOfWholeCluster(object)) throw error;
    deps.onStep(`${object.kind} ${object.metadata.name} may not be made by you: the controller will not see what nodes have free`);
  }
}

/** What the user may not be allowed to grant in a Role, and what follows. Fewest rights first. */
const sparedRights = [
  { spared: [readinessRule], effect: 'a pod will be ready as soon as its containers run' },
  { spared: drainRules, effect: 'a drain will end all replicas of its node at once' },
] as const;

/** Applies a Role without optional rights that the user may not grant. False: that does not help, or it is no Role. */
async function applyWithout(object: KubeDraft, deps: KubernetesDeps): Promise<boolean> {
  const { kind, rules } = object;
  if (kind !== 'Role' || !Array.isArray(rules)) return false;
  for (const { spared, effect } of sparedRights) {
    const left = rules.filter((rule: unknown) => !spared.some((one) => isDeepStrictEqual(one, rule)));
    if (left.length === rules.length) return false;
    try {
      await apply({ ...object, rules: left }, deps);
    } catch (error) {
      if (isDenied(error)) continue;
      throw error;
    }
    const what = spared.flatMap(({ resources }) => resources).join(' and ');
    deps.onStep(`You may not grant rights to ${what}: ${effect}`);
    return true;
  }
  return false;
}

async function apply(object: KubeDraft, { api, signal }: KubernetesDeps): Promise<KubeObject> {
  return api.apply(pathOf(object), object, { signal });
}

/**
 * Whether the controller with that key exists, also from another home or from manifests. Objects of an earlier anchor
 * do not count: Kubernetes is about to remove them.
 */
export async function isThere(
  site: KubernetesSite,
  key: string,
  { api, signal }: Pick<KubernetesDeps, 'api' | 'signal'>,
): Promise<boolean> {
  const anchor = await findAnchor(api, site, signal);
  if (anchor === undefined || anchor.key !== key || anchor.isGoing) return false;
  const deployment = await api.get(pathOfOne('Deployment', site.namespace, haNames.controller), { signal });
  if (deployment === undefined || !isMarked(deployment, key)) return false;
  const { deletionTimestamp, ownerReferences = [] } = deployment.metadata;
  return deletionTimestamp === undefined && (ownerReferences.length === 0 || ownerReferences.some(({ uid }) => uid === anchor.uid));
}
