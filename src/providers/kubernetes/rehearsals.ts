import type { KubeApi, KubeDraft } from '../../kubernetes/kube-api.ts';
import { kubeStatusOf } from '../../kubernetes/kube-errors.ts';
import { pathOf, pathOfOne } from '../../kubernetes/paths.ts';
import { fingerprint } from '../../shared/fingerprint.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import { planMachine, type Creation, type MachinePlan } from './creation.ts';
import { creationError } from './errors.ts';
import { anchorManifest, podManifest } from './manifest.ts';
import { firstPod } from './names.ts';
import { referencesOf, type Reference } from './references.ts';

/** Of so many descriptions of pods it is remembered that a cluster took them. */
const rememberedDescriptions = 100;

/**
 * Shows pods to their cluster before they are made (`dryRun`), so that it refuses at once what it would refuse later: classes that do not exist, fields that are
 * none, quotas, webhooks, missing rights. What it does not look at by itself is looked for besides.
 */
export class Rehearsals {
  /** What clusters took in this process, what was asked for longest ago first. */
  readonly #taken = new Set<string>();

  /** All that the first replica of a service would need. Throws a `PlaceRefusal` in the cluster's words, or what kept it from answering. */
  async everything(creation: Creation): Promise<void> {
    const plan = await planMachine(creation);
    try {
      await firstFailure([pod(creation, draftOf(plan, firstPod(plan.base))), tried(creation, anchorManifest(plan))]);
    } catch (error) {
      throw creationError(error, creation.offer);
    }
  }

  /** The pod alone, once for each description of one, under a name that no pod has yet. */
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
  await firstFailure([tried(creation, draft), ...referencesOf(draft).map((reference) => lookFor(creation, reference))]);
}

/** Waits for all, and throws the failure of the first in order: what is told does not depend on who answers faster. */
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

/** A webhook with effects of its own takes no trials: what it will say is known only when something is made. */
function isUntriable(error: unknown): boolean {
  return kubeStatusOf(error)?.message.includes('does not support dry run') === true;
}

async function lookFor({ cluster, ref, offer, signal }: Creation, reference: Reference): Promise<void> {
  const { kind, name } = reference;
  const { namespace } = ref;
  if (await isThere(cluster.api, reference, namespace, signal)) return;
  const plural = kind === 'ConfigMap' ? 'configmaps' : 'persistentvolumeclaims';
  throw new PlaceRefusal(
    'setup',
    'region',
    `The cluster ${offer.region} has no ${kind} ${name} in the namespace ${namespace}, which the pod needs.`,
    {
      hint: `Make it, or name one that is there: kubectl --context ${offer.region} -n ${namespace} get ${plural}`,
    },
  );
}

/** True also where the cluster does not say. ConfigMaps may be changed, and not read: a change of nothing that is not kept finds them too. */
async function isThere(api: KubeApi, { kind, name }: Reference, namespace: string, signal: AbortSignal | undefined): Promise<boolean> {
  const path = pathOfOne(kind, namespace, name);
  try {
    const found = kind === 'ConfigMap' ? await api.merge(path, {}, { dryRun: true, signal }) : await api.get(path, { signal });
    return found !== undefined;
  } catch (error) {
    if (kubeStatusOf(error) !== undefined) return true;
    throw error;
  }
}
