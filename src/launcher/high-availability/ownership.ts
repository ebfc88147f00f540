import type { KubeApi, KubeDraft, KubeObject } from '../../kubernetes/kube-api.ts';
import { durationAnnotation } from '../../kubernetes/lease.ts';
import { pathOf } from '../../kubernetes/paths.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ClusterDeps } from './cluster-deps.ts';
import { isDenied } from './cluster-facts.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets } from './design.ts';
import { manifests } from './manifests.ts';
import { haNames, ownedLabel } from './names.ts';
import { kubectlAt } from './site.ts';

/** An object as it is named, whether it is there or not. */
export type NamedObject = Pick<KubeDraft, 'apiVersion' | 'kind' | 'metadata'>;

/**
 * Every object of the controller that a design describes, the first one first: those that are applied, and the Lease, which the one that leads makes itself.
 */
export function objectsOf(design: HighAvailabilityDesign, secrets: HighAvailabilitySecrets): readonly NamedObject[] {
  const metadata = { name: haNames.lease, namespace: design.namespace };
  return [...manifests(design, secrets, undefined), { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata }];
}

/** Whether an object carries the mark of the controller with that key; a Lease has what every holder writes into it. */
export function isMarked({ metadata: { labels, annotations } }: KubeObject, key: string): boolean {
  return labels?.[ownedLabel] === key || annotations?.[durationAnnotation] !== undefined;
}

/** An object as it is; undefined when it is not there, or when it belongs to the whole cluster and may not be looked at. */
export async function lookAt(object: NamedObject, api: KubeApi, signal: AbortSignal): Promise<KubeObject | undefined> {
  try {
    return await api.get(pathOf(object), { signal });
  } catch (error) {
    if (isOfWholeCluster(object) && isDenied(error)) return undefined;
    throw error;
  }
}

/** What needs rights in the whole cluster, which not everybody has: a controller works without it. */
export function isOfWholeCluster({ kind }: Pick<NamedObject, 'kind'>): boolean {
  return kind.startsWith('Cluster');
}

/**
 * Throws SVC_CONTROLLER_KIND when somebody else has an object of one of our names. Applying takes fields over from whoever set them, so what is not ours must
 * be found before anything is applied.
 */
export async function refuseForeign(
  design: HighAvailabilityDesign,
  secrets: HighAvailabilitySecrets,
  { api, signal }: Pick<ClusterDeps, 'api' | 'signal'>,
): Promise<void> {
  const { namespace, key } = design;
  const objects = objectsOf(design, secrets);
  const found = await Promise.all(objects.map((object) => lookAt(object, api, signal)));
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
