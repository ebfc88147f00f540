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

/** One watched collection, in the order in which it is asked for. */
interface Watched<T extends KubeObject, Index> {
  list: WatchedList<T> | undefined;
  readonly order: (items: readonly T[]) => Index;
  /** What `order` made of it since the last change: many machines are asked about one by one. */
  ordered: Index | undefined;
  /** Whether its API server is away. */
  isAway: boolean;
}

/** What is to be watched. */
interface ToWatch<T extends KubeObject, Index> {
  readonly context: string;
  readonly path: string;
  readonly selection: { readonly labelSelector?: string };
  readonly signal: AbortSignal;
  readonly order: (items: readonly T[]) => Index;
  readonly keep?: (object: T) => T;
}

/** Pods by the machine that they are of. */
export type PodsByMachine = ReadonlyMap<string, readonly Pod[]>;
type NodesByName = ReadonlyMap<string, Node>;

/** Puts pods to the machines that they are of. */
export function byMachine(pods: readonly Pod[]): PodsByMachine {
  return Map.groupBy(pods, ({ metadata }) => metadata.labels?.[ownLabels.machine] ?? '');
}

const byName = (nodes: readonly Node[]): NodesByName => new Map(nodes.map((node) => [node.metadata.name, node]));

/**
 * Our pods, and the nodes, kept up by watching while somebody listens: in every namespace where this home has made something. What is known so is told
 * to `Cluster`, which asks where it is not, or not any more.
 */
export class PodWatches {
  readonly #deps: { readonly clock: Clock; readonly random: Random };
  readonly #api: (context: string) => Promise<KubeApi>;
  readonly #listeners = new Set<() => void>();
  readonly #pods = new Map<string, Watched<Pod, PodsByMachine>>();
  readonly #nodes = new Map<string, Watched<Node, NodesByName>>();
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
    if (!this.#pods.has(key)) {
      const selection = { labelSelector: ownLabels.machine };
      this.#pods.set(key, this.#watch({ context, path: pathOfAll('Pod', namespace), selection, signal, order: byMachine }));
    }
    if (!this.#nodes.has(context))
      this.#nodes.set(context, this.#watch({ context, path: pathOfAll('Node'), selection: {}, signal, order: byName, keep: countedNode }));
  }

  /** Our pods in a namespace; undefined where they are not watched, or that cannot be relied on now. */
  pods(context: string, namespace: string): PodsByMachine | undefined {
    return this.#known(this.#pods.get(`${context}/${namespace}`));
  }

  /** All nodes of a context; undefined as with `pods`. */
  nodes(context: string): NodesByName | undefined {
    return this.#known(this.#nodes.get(context));
  }

  #known<T extends KubeObject, Index>(watched: Watched<T, Index> | undefined): Index | undefined {
    if (watched?.list === undefined || watched.isAway || !watched.list.isSynced) return undefined;
    const heardAt = watched.list.heardAt ?? Number.NEGATIVE_INFINITY;
    if (this.#deps.clock.monotonic() - heardAt >= confirmedMs) return undefined;
    watched.ordered ??= watched.order(watched.list.items);
    return watched.ordered;
  }

  #watch<T extends KubeObject, Index>({ context, path, selection, signal, order, keep }: ToWatch<T, Index>): Watched<T, Index> {
    const watched: Watched<T, Index> = { list: undefined, order, ordered: undefined, isAway: false };
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
      watched.list.onChange((changes) => {
        watched.ordered = undefined;
        this.#onChange(path, changes);
      });
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
