import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { WatchedList, type ObjectChange } from '../../kubernetes/watched-list.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { isDenied } from './errors.ts';
import { ownLabels } from './names.ts';
import { countedNode } from './counted.ts';
import { isNodeReady } from './node-facts.ts';
import { lostAfterMs } from './node-health.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import type { Node } from './objects.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';

/** After the last listener has gone, watches go on for so long, ms: machines are waited for one after the other. */
const lingerMs = 30_000;
/** What was not confirmed for so long, ms, is not relied on; API servers confirm once a minute. */
const confirmedMs = 100_000;

/** Between two tries to begin, ms: each may run the user's login program. */
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/** Where pods are watched. */
interface Where {
  readonly context: string;
  readonly namespace: string;
}

/** One watched collection. */
interface Watched<T extends KubeObject> {
  list: WatchedList<T> | undefined;
  /** Whether its API server is away. */
  isAway: boolean;
}

/**
 * Our pods, and the nodes, kept up by watching while somebody listens: in every namespace where this home has made something. What is known so is told
 * to `Cluster`, which asks where it is not, or not any more.
 */
export class PodWatches {
  readonly #deps: { readonly clock: Clock; readonly random: Random };
  readonly #api: (context: string) => Promise<KubeApi>;
  readonly #listeners = new Set<() => void>();
  readonly #pods = new Map<string, Watched<Pod>>();
  readonly #nodes = new Map<string, Watched<Node>>();
  #running: AbortController | undefined;
  #lingering: CancelTimer | undefined;

  constructor(deps: { readonly clock: Clock; readonly random: Random }, api: (context: string) => Promise<KubeApi>) {
    this.#deps = deps;
    this.#api = api;
  }

  /** Calls `onChange` after each change until the signal aborts. */
  listen(onChange: () => void, signal: AbortSignal, places: readonly Where[]): void {
    if (signal.aborted) return;
    this.#lingering?.();
    this.#running ??= new AbortController();
    // The same function may listen twice.
    const listener = (): void => onChange();
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#leave(listener), { once: true });
    for (const place of places) this.add(place);
  }

  /** There may be something there from now on. */
  add({ context, namespace }: Where): void {
    if (this.#running === undefined) return;
    const { signal } = this.#running;
    const key = `${context}/${namespace}`;
    if (!this.#pods.has(key))
      this.#pods.set(key, this.#watch<Pod>(context, pathOfAll('Pod', namespace), { labelSelector: ownLabels.machine }, signal));
    if (!this.#nodes.has(context)) this.#nodes.set(context, this.#watch<Node>(context, pathOfAll('Node'), {}, signal, countedNode));
  }

  /** Our pods in a namespace; undefined where they are not watched, or that cannot be relied on now. */
  pods(context: string, namespace: string): readonly Pod[] | undefined {
    return this.#known(this.#pods.get(`${context}/${namespace}`));
  }

  /** All nodes of a context; undefined as with `pods`. */
  nodes(context: string): readonly Node[] | undefined {
    return this.#known(this.#nodes.get(context));
  }

  #known<T extends KubeObject>(watched: Watched<T> | undefined): readonly T[] | undefined {
    if (watched?.list === undefined || watched.isAway || !watched.list.isSynced) return undefined;
    const heardAt = watched.list.heardAt ?? Number.NEGATIVE_INFINITY;
    return this.#deps.clock.monotonic() - heardAt < confirmedMs ? watched.list.items : undefined;
  }

  #watch<T extends KubeObject>(
    context: string,
    path: string,
    selection: { readonly labelSelector?: string },
    signal: AbortSignal,
    keep?: (object: T) => T,
  ): Watched<T> {
    const watched: Watched<T> = { list: undefined, isAway: false };
    const begin = async (): Promise<void> => {
      const api = await this.#api(context);
      if (!(await mayList(api, path, selection, signal))) return;
      if (signal.aborted) return;
      watched.list = new WatchedList<T>(path, selection, {
        ...this.#deps,
        api,
        signal,
        keep,
        onTrouble: (why) => {
          watched.isAway = why !== undefined;
          this.#tell();
        },
      });
      watched.list.onChange((changes) => this.#onChange(path, changes));
    };
    this.#untilBegun(begin, signal);
    return watched;
  }

  /** While it cannot be begun, as before a login, who inspects asks the cluster, and hears why. */
  #untilBegun(begin: () => Promise<void>, signal: AbortSignal, pauseMs = firstPauseMs): void {
    if (signal.aborted) return;
    const { clock, random } = this.#deps;
    begin().catch(() => {
      const next = Math.min(longestPauseMs, pauseMs * 2);
      clock.after(pauseMs * (0.5 + random() / 2), () => this.#untilBegun(begin, signal, next));
    });
  }

  #onChange(path: string, changes: readonly ObjectChange<KubeObject>[]): void {
    if (path !== pathOfAll('Node')) return this.#tell();
    // Nodes change all the time, mostly in what does not matter here.
    if (!changes.some(({ before, after }) => readiness(before) !== readiness(after))) return;
    this.#tell();
    // A node that stays away counts as lost a little later.
    this.#deps.clock.after(lostAfterMs + 50, () => this.#tell());
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  #leave(listener: () => void): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#lingering?.();
    this.#lingering = this.#deps.clock.after(lingerMs, () => {
      if (this.#listeners.size > 0) return;
      this.#running?.abort();
      this.#running = undefined;
      this.#pods.clear();
      this.#nodes.clear();
    });
  }
}

const readiness = (node: Node | undefined): boolean | undefined => node && isNodeReady(node);

/** Whether the user may list a collection at all: who may not would be refused every few seconds. */
async function mayList(api: KubeApi, path: string, selection: { readonly labelSelector?: string }, signal: AbortSignal): Promise<boolean> {
  try {
    await api.text(path, { query: { limit: '1', ...selection }, signal });
    return true;
  } catch (error) {
    return !isDenied(error);
  }
}
