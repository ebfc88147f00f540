import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import { hasEnded, type Pod, type Quantities } from '../../kubernetes/pod.ts';
import { readQuantities } from '../../kubernetes/quantity.ts';
import { WatchedList, type ObjectChange } from '../../kubernetes/watched-list.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { Listeners, mayList, type NamespaceRef } from './pod-watches.ts';

/** The fields of a quota that show how much is left. */
interface ResourceQuota extends KubeObject {
  readonly spec?: unknown;
  readonly status?: { readonly hard?: Quantities; readonly used?: Quantities };
}

/** After a pod has gone, the quota controller takes this long to count again, ms. */
const recountMs = 1_500;

/** The kept part of a pod: only its end matters. */
const endOfPod = ({ metadata, status }: Pod): Pod => ({
  metadata,
  status: { ...(status?.phase !== undefined && { phase: status.phase }) },
});

/**
 * Whether a refused pod may fit after a quota changed. The quota is deleted, allows more, is used less, or is new and
 * for the pod's class.
 */
function mayFreeQuota({ before, after }: ObjectChange<ResourceQuota>): boolean {
  if (before === undefined || after === undefined) return true;
  const text = ({ spec, status }: ResourceQuota): string => JSON.stringify([spec, status?.hard]);
  if (text(before) !== text(after)) return true;
  const used = readQuantities(after.status?.used);
  return [...readQuantities(before.status?.used)].some(([name, amount]) => (used.get(name) ?? 0) < amount);
}

/** Whether a pod that ended, or was deleted, may have freed quota. */
const mayFreeRoom = ({ before, after }: ObjectChange<Pod>): boolean =>
  before !== undefined && !hasEnded(before) && (after === undefined || hasEnded(after));

interface WatchedNamespace {
  readonly listeners: Listeners;
  /** A change without a listener, for example during an attempt. */
  hasMissed: boolean;
}

/**
 * Watches the quotas of namespaces that refused a pod, and reports changes after which it may fit. Where the user may
 * not read quotas, it watches the pods of the namespace instead.
 */
export class QuotaWatches {
  readonly #deps: { readonly clock: Clock; readonly random: Random };
  readonly #api: (context: string) => Promise<KubeApi>;
  readonly #namespaces = new Map<string, WatchedNamespace>();

  constructor(deps: { readonly clock: Clock; readonly random: Random }, api: (context: string) => Promise<KubeApi>) {
    this.#deps = deps;
    this.#api = api;
  }

  /** Calls `onFreed` after each such change until the signal aborts. */
  listen(ref: NamespaceRef, onFreed: () => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    const key = `${ref.context}/${ref.namespace}`;
    const watched = this.#namespaces.get(key) ?? this.#begin(ref);
    this.#namespaces.set(key, watched);
    watched.listeners.add(onFreed, signal);
    if (!watched.hasMissed) return;
    watched.hasMissed = false;
    queueMicrotask(onFreed);
  }

  #begin({ context, namespace }: NamespaceRef): WatchedNamespace {
    const key = `${context}/${namespace}`;
    const stop = new AbortController();
    const { signal } = stop;
    const listeners = new Listeners(this.#deps.clock, () => {
      stop.abort();
      if (this.#namespaces.get(key) === watched) this.#namespaces.delete(key);
    });
    const watched: WatchedNamespace = { listeners, hasMissed: false };
    const notify = (): void => {
      watched.hasMissed = listeners.areNone;
      listeners.notify();
    };
    const watch = async (): Promise<void> => {
      const api = await this.#api(context);
      const quotas = pathOfAll('ResourceQuota', namespace);
      const deps = { ...this.#deps, api, signal };
      if (await mayList(api, quotas, {}, signal)) {
        const list = new WatchedList<ResourceQuota>(quotas, {}, deps);
        await list.synced;
        list.onChange((changes) => {
          if (changes.some(mayFreeQuota)) notify();
        });
      } else {
        const list = new WatchedList<Pod>(pathOfAll('Pod', namespace), {}, { ...deps, keep: endOfPod });
        await list.synced;
        list.onChange((changes) => {
          if (changes.some(mayFreeRoom)) this.#deps.clock.after(recountMs, notify);
        });
      }
      // A change between the refusal and the first list was not seen.
      notify();
    };
    // Without a watch only the backoff ends the refusal; the next search begins another watch.
    watch().catch(() => this.#namespaces.delete(key));
    return watched;
  }
}
