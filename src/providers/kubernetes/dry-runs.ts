import type { KubeApi, KubeDraft } from '../../kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { fingerprint } from '../../shared/hex.ts';
import { ProviderRefusal } from '../provider-refusal.ts';
import { type Creation, type MachinePlan, planMachine } from './create.ts';
import { creationError } from './errors.ts';
import { anchorManifest, podManifest } from './manifest.ts';
import { firstPod } from './names.ts';
import { isObject } from '../../shared/json.ts';

const rememberedDescriptions = 100;

/** Preflight: sends pods as dry runs (`dryRun`). Separate requests check the references that a dry run skips. */
export class DryRuns {
  /** Descriptions that were accepted, the least recently used first. */
  readonly #taken = new Set<string>();

  /** Throws a `ProviderRefusal` with the Kubernetes cluster's message, or the error that prevented an answer. */
  async everything(creation: Creation): Promise<void> {
    const plan = await planMachine(creation);
    try {
      await firstFailure([pod(creation, draftOf(plan, firstPod(plan.base))), tried(creation, anchorManifest(plan))]);
    } catch (error) {
      throw creationError(error, creation.offer);
    }
  }

  /** Checks only the pod, once per description. */
  async once(creation: Creation, plan: MachinePlan, name: string): Promise<void> {
    const { cluster, ref } = creation;
    const id = fingerprint(JSON.stringify([cluster.context, ref.namespace, draftOf(plan, name)['spec']]));
    if (!this.#taken.delete(id)) await pod(creation, draftOf(plan, name));
    this.#taken.add(id);
    const [oldest] = this.#taken;
    if (oldest !== undefined && this.#taken.size > rememberedDescriptions) this.#taken.delete(oldest);
  }
}

function draftOf(plan: MachinePlan, name: string): KubeDraft {
  const anchor = { name: anchorManifest(plan).metadata.name, uid: 'not-made-yet' };
  return podManifest({ ...plan, name, rank: 0, anchor });
}

async function pod(creation: Creation, draft: KubeDraft): Promise<void> {
  await firstFailure([tried(creation, draft), ...referencesOf(draft).map((reference) => checkReference(creation, reference))]);
}

/** Throws the first failure in order, so that the message does not depend on which answers faster. */
async function firstFailure(parts: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(parts)) if (result.status === 'rejected') throw result.reason;
}

async function tried({ cluster, signal }: Creation, draft: KubeDraft): Promise<void> {
  try {
    await cluster.api.apply(pathOf(draft), draft, { dryRun: true, signal });
  } catch (error) {
    if (!isUntriable(error)) throw error;
  }
}

/** Webhooks with side effects accept no dry runs. */
function isUntriable(error: unknown): boolean {
  return kubeStatusOf(error)?.message.includes('does not support dry run') === true;
}

async function checkReference({ cluster, ref, offer, signal }: Creation, reference: Reference): Promise<void> {
  const { kind, name } = reference;
  const { namespace } = ref;
  if (await referenceExists(cluster.api, reference, namespace, signal)) return;
  const plural = kind === 'ConfigMap' ? 'configmaps' : 'persistentvolumeclaims';
  throw new ProviderRefusal(
    'setup',
    'region',
    `The cluster ${offer.region} has no ${kind} ${name} in the namespace ${namespace}, which the pod needs.`,
    {
      hint: `Make it, or name one that is there: kubectl --context ${offer.region} -n ${namespace} get ${plural}`,
    },
  );
}

/** True also if unknown. An empty change as a dry run finds ConfigMaps that the user may change but not read. */
async function referenceExists(
  api: KubeApi,
  { kind, name }: Reference,
  namespace: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const path = pathOfOne(kind, namespace, name);
  try {
    const found = kind === 'ConfigMap' ? await api.merge(path, {}, { dryRun: true, signal }) : await api.get(path, { signal });
    return found !== undefined;
  } catch (error) {
    if (kubeStatusOf(error) !== undefined) return true;
    throw error;
  }
}

interface Reference {
  readonly kind: 'PersistentVolumeClaim' | 'ConfigMap';
  readonly name: string;
}

/**
 * The claims and ConfigMaps of a pod: without them, Kubernetes accepts it but never starts it. Secrets are left out:
 * only the Kubernetes cluster should read them. It checks service accounts and classes itself.
 */
export function referencesOf(draft: KubeDraft): readonly Reference[] {
  const spec = isObject(draft['spec']) ? draft['spec'] : {};
  const volumes = itemsOf(spec, 'volumes');
  const claims = volumes.flatMap((volume) => nameIn(volume['persistentVolumeClaim'], 'claimName'));
  const sources = volumes.flatMap((volume) => [volume, ...(isObject(volume['projected']) ? itemsOf(volume['projected'], 'sources') : [])]);
  const containers = [...itemsOf(spec, 'initContainers'), ...itemsOf(spec, 'containers')];
  const values = containers
    .flatMap((container) => itemsOf(container, 'env'))
    .map(({ valueFrom }) => (isObject(valueFrom) ? valueFrom : {}));
  const configMaps = [
    ...sources.flatMap(({ configMap }) => nameIn(configMap)),
    ...values.flatMap(({ configMapKeyRef }) => nameIn(configMapKeyRef)),
    ...containers.flatMap((container) => itemsOf(container, 'envFrom')).flatMap(({ configMapRef }) => nameIn(configMapRef)),
  ];
  return [
    ...[...new Set(claims)].map((name): Reference => ({ kind: 'PersistentVolumeClaim', name })),
    ...[...new Set(configMaps)].map((name): Reference => ({ kind: 'ConfigMap', name })),
  ];
}

function itemsOf(holder: Readonly<Record<string, unknown>>, field: string): readonly Readonly<Record<string, unknown>>[] {
  const items = holder[field];
  return Array.isArray(items) ? items.filter((item) => isObject(item)) : [];
}

/** Empty where the pod starts without the named object. */
function nameIn(reference: unknown, field = 'name'): readonly string[] {
  if (!isObject(reference) || reference['optional'] === true) return [];
  const name = reference[field];
  return typeof name === 'string' && name !== '' ? [name] : [];
}
