import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import { hasEnded, type Pod, type Quantities } from '../../kubernetes/pod.ts';
import { readQuantities } from '../../kubernetes/quantity.ts';
import { WatchedList, type ObjectChange } from '../../kubernetes/watched-list.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { Listeners, mayList, type NamespaceRef } from './pod-watches.ts';

interface ResourceQuota extends KubeObject {
  readonly spec?: unknown;
  readonly status?: { readonly hard?: Quantities; readonly used?: Quantities };
}

/** The quota controller counts again this long after a pod has gone, ms. */
const recountMs = 1_500;

const endOfPod = ({ metadata, status }: Pod): Pod => ({
  metadata,
  status: { ...(status?.phase !== undefined && { phase: status.phase }) },
});

/** A quota changed so that a refused pod may fit: it is gone, new, allows more, or is used less. */
function mayFreeQuota({ before, after }: ObjectChange<ResourceQuota>): boolean {
  if (before === undefined || after === undefined) return true;
  const text = ({ spec, status }: ResourceQuota): string => JSON.stringify([spec, status?.hard]);
  if (text(before) !== text(after)) return true;
  const used = readQuantities(after.status?.used);
  return [...readQuantities(before.status?.used)].some(([name, amount]) => (used.get(name) ?? 0) < amount);
}

const mayFreeRoom = ({ before, after }: ObjectChange<Pod>): boolean =>
  before !== undefined && !hasEnded(before) && (after === undefined || hasEnded(after));

interface WatchedNamespace {
  readonly listeners: Listeners;
  /** There was a change without a listener, for example during an attempt. */
  hasMissed: boolean;
}

/** Reports changes after which a refused pod may fit. Watches pods where the user may not read quotas. */
export class QuotaWatches {
  readonly #deps: { readonly clock: Clock; readonly random: Random };
  readonly #api: (context: string) => Promise<KubeApi>;
  readonly #namespaces = new Map<string, WatchedNamespace>();

  constructor(deps: { readonly clock: Clock; readonly random: Random }, api: (context: string) => Promise<KubeApi>) {
    this.#deps = deps;
    this.#api = api;
  }

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
    // Without a watch only the backoff ends the refusal. The next search begins another watch.
    watch().catch(() => this.#namespaces.delete(key));
    return watched;
  }
}
