import type { KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { findAnchor, isDenied, outsideHost, policyVersion } from './cluster-facts.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets, OwnerReference } from './design.ts';
import type { KnownOfCluster } from './design-of.ts';
import { endpointsService, manifests } from './manifests.ts';
import { haNames } from './names.ts';
import { ownedBy } from './object-parts.ts';
import { isMarked, isOfWholeCluster, lookAt, refuseForeign } from './ownership.ts';
import { anchorObject } from './settings-objects.ts';
import { kubectlAt, type ClusterSite } from './site.ts';

/** A cloud gives a load balancer its address within so long, ms; endpoints have their name inside the cluster until then. */
const addressTimeoutMs = 180_000;
const addressPollMs = 1_000;

/** Objects that were being removed are gone, and made anew, within so long, ms: a volume waits for its last pod. */
const wholeTimeoutMs = 120_000;
const wholePollMs = 1_000;

/** What is known of the cluster before anything is made there. */
export async function knownOfCluster(
  site: ClusterSite,
  key: string,
  { api, signal }: Pick<ClusterDeps, 'api' | 'signal'>,
  type: HighAvailabilityDesign['endpointService'],
): Promise<KnownOfCluster> {
  const [version, host] = await Promise.all([policyVersion(api, signal), outsideHost(api, site, type, signal)]);
  return { key, policyVersion: version, outsideHost: host };
}

/**
 * Makes the objects what the design says, each in one step, and gives back what is there by then. When somebody removes the anchor meanwhile, the cluster
 * takes away what belongs to it: then everything is made again. Safe to repeat after a crash at any line. Throws SVC_CONTROLLER_KIND, with nothing changed,
 * when an object of one of our names is somebody else's.
 */
export async function applyDesign(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets,
  deps: ClusterDeps,
): Promise<HighAvailabilityDesign> {
  const { clock, signal, onStep } = deps;
  await refuseForeign(design, secrets, deps);
  onStep(`Making the objects of the controller in ${design.context}/${design.namespace}`);
  const deadline = clock.monotonic() + wholeTimeoutMs;
  for (;;) {
    const { addressed, missing } = await applyOnce(design, secrets, deps);
    if (missing.length === 0) return addressed;
    if (clock.monotonic() > deadline) throw keepsGoing(design, missing);
    onStep(`Making again what was removed meanwhile: ${missing.join(', ')}`);
    await clock.sleep(wholePollMs, signal);
    signal.throwIfAborted();
  }
}

/** Applies everything once, the anchor first, as the others belong to it; tells what is not there afterwards, or will not stay. */
async function applyOnce(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets,
  deps: ClusterDeps,
): Promise<{ readonly addressed: HighAvailabilityDesign; readonly missing: readonly string[] }> {
  const anchor = await apply(anchorObject(design), deps);
  const owner: OwnerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: haNames.anchor, uid: anchor.metadata.uid };
  const addressed = design.endpointService === 'LoadBalancer' ? await withAddress(design, owner, deps) : design;
  const objects = manifests(addressed, secrets, owner);
  for (const object of objects) await applyAsAllowed(object, deps);
  return { addressed, missing: await missingOf(objects, owner, deps) };
}

async function missingOf(objects: readonly KubeDraft[], owner: OwnerReference, { api, signal }: ClusterDeps): Promise<readonly string[]> {
  const found = await Promise.all(objects.map((object) => lookAt(object, api, signal)));
  return objects.flatMap((object, index) => {
    const there = found[index]?.metadata;
    const isAnchor = object.kind === owner.kind && object.metadata.name === owner.name;
    const stays = there !== undefined && there.deletionTimestamp === undefined && (!isAnchor || there.uid === owner.uid);
    return stays || isOfWholeCluster(object) ? [] : [`${object.kind} ${object.metadata.name}`];
  });
}

function keepsGoing(site: HighAvailabilityDesign, missing: readonly string[]): SvcError {
  return new SvcError('SVC_CONTROLLER_START', `Objects of the controller are removed again and again: ${missing.join(', ')}.`, {
    hint: `Find out who removes them (${kubectlAt(site)} get events), and run the command again.`,
  });
}

/** The address is part of what the controller is told, so it is waited for. */
async function withAddress(design: HighAvailabilityDesign, owner: OwnerReference, deps: ClusterDeps): Promise<HighAvailabilityDesign> {
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

async function applyAsAllowed(object: KubeDraft, deps: ClusterDeps): Promise<void> {
  try {
    await apply(object, deps);
  } catch (error) {
    // Without reading nodes it cannot tell beforehand what there is room for, and works all the same.
    if (!isOfWholeCluster(object) || !isDenied(error)) throw error;
    deps.onStep(`${object.kind} ${object.metadata.name} may not be made by you: the controller will not see what nodes have free`);
  }
}

async function apply(object: KubeDraft, { api, signal }: ClusterDeps): Promise<KubeObject> {
  return api.apply(pathOf(object), object, { signal });
}

/**
 * Whether the controller with that key is there, whoever brought it up: this home or another one, or a repository of manifests. What belongs to an anchor of
 * before is about to be taken away by the cluster, and does not count.
 */
export async function isThere(site: ClusterSite, key: string, { api, signal }: Pick<ClusterDeps, 'api' | 'signal'>): Promise<boolean> {
  const anchor = await findAnchor(api, site, signal);
  if (anchor === undefined || anchor.key !== key || anchor.isGoing) return false;
  const deployment = await api.get(pathOfOne('Deployment', site.namespace, haNames.controller), { signal });
  if (deployment === undefined || !isMarked(deployment, key)) return false;
  const { deletionTimestamp, ownerReferences = [] } = deployment.metadata;
  return deletionTimestamp === undefined && (ownerReferences.length === 0 || ownerReferences.some(({ uid }) => uid === anchor.uid));
}
