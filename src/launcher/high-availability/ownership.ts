import type { KubeApi, KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { durationAnnotation } from '../../kubernetes/lease.ts';
import { pathOf } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import { isDenied } from './cluster-facts.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets } from './design.ts';
import { manifests } from './manifests.ts';
import { haNames, ownedLabel } from './names.ts';
import { kubectlAt, type KubernetesDeps } from './site.ts';

/** The identity of an object, whether or not it exists. */
export type NamedObject = Pick<KubeDraft, 'apiVersion' | 'kind' | 'metadata'>;

/** All objects of a design, in the order of their application. The leader creates the last one, the Lease. */
export function objectsOf(design: HighAvailabilityDesign, secrets: HighAvailabilitySecrets): readonly NamedObject[] {
  const metadata = { name: haNames.lease, namespace: design.namespace };
  return [...manifests(design, secrets, undefined), { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }];
}

/** Whether an object has the label with that key. A Lease has an annotation instead, which every holder writes. */
export function isMarked({ metadata: { labels, annotations } }: KubeObject, key: string): boolean {
  return labels?.[ownedLabel] === key || annotations?.[durationAnnotation] !== undefined;
}

/** Undefined when it is missing, or belongs to the whole Kubernetes cluster and this user may not read it. */
export async function readObject(object: NamedObject, api: KubeApi, signal: AbortSignal): Promise<KubeObject | undefined> {
  try {
    return await api.get(pathOf(object), { signal });
  } catch (error) {
    if (isOfWholeCluster(object) && isDenied(error)) return undefined;
    throw error;
  }
}

/** Not every user has permissions for the whole Kubernetes cluster. A controller works without such objects. */
export function isOfWholeCluster({ kind }: Pick<NamedObject, 'kind'>): boolean {
  return kind.startsWith('Cluster');
}

/**
 * Throws SVC_CONTROLLER_KIND when another owner has an object with one of svc's names. Must come before the first
 * apply, which takes over fields from other owners.
 */
export async function refuseForeign(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets,
  { api, signal }: Pick<KubernetesDeps, 'api' | 'signal'>,
): Promise<void> {
  const { namespace, key } = design;
  const objects = objectsOf(design, secrets);
  const found = await Promise.all(objects.map((object) => readObject(object, api, signal)));
  const foreign = objects.filter((_, index) => {
    const there = found[index];
    return there !== undefined && !isMarked(there, key);
  });
  const [first] = foreign;
  if (first === undefined) return;
  const names = foreign.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ');
  const label = `${kubectlAt(design)} label ${first.kind.toLowerCase()} ${first.metadata.name} ${ownedLabel}=${key}`;
  throw new SvcError(
    'SVC_CONTROLLER_KIND',
    `The namespace ${namespace} has objects of these names that are not of this controller: ${names}.`,
    {
      hint: `Use another namespace: kubernetes: {namespace: NAME} in config.yaml. What was made for this controller by hand needs its label: ${label}`,
    },
  );
}
