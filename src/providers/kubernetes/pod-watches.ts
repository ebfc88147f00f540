import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { WatchedList, type ObjectChange } from '../../kubernetes/watched-list.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { isDenied } from './errors.ts';
import { ownLabels } from './names.ts';
import { countedNode } from './counted.ts';
import { isNodeReady } from './nodes/node-facts.ts';
import { lastingMs } from './nodes/node-health.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import type { Node } from './objects.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';

/** Watches continue for this long after their last listener, ms: machines are waited for one after the other. */
const lingerMs = 30_000;
/** A watch that was not confirmed for this long, ms, is not trusted; API servers confirm once a minute. */
const confirmedMs = 100_000;

/** Backoff between two attempts to begin a watch: each may run the user's login program. */
const retry: Backoff = { firstMs: 1_000, longestMs: 30_000, jitter: 0.5 };

/** A namespace of a context whose pods are watched. */
export interface NamespaceRef {
  readonly context: string;
  readonly namespace: string;
}

/** One watched collection, with an index over it. */
interface Watched<T extends KubeObject, Index> {
  list: WatchedList<T> | undefined;
  readonly order: (items: readonly T[]) => Index;
  /** The index that `order` built since the last change: many machines are inspected one by one. */
  ordered: Index | undefined;
  /** Whether its API server does not answer. */
  isUnreachable: boolean;
}

/** A collection to watch. */
interface ToWatch<T extends KubeObject, Index> {
  readonly context: string;
  readonly path: string;
  readonly selection: { readonly labelSelector?: string };
  readonly signal: AbortSignal;
  readonly order: (items: readonly T[]) => Index;
  readonly keep?: (object: T) => T;
}

/** Pods by their machine. */
export type PodsByMachine = ReadonlyMap<string, readonly Pod[]>;
type NodesByName = ReadonlyMap<string, Node>;

/** Groups pods by their machine. */
export function byMachine(pods: readonly Pod[]): PodsByMachine {
  return Map.groupBy(pods, ({ metadata }) => metadata.labels?.[ownLabels.machine] ?? '');
}

const byName = (nodes: readonly Node[]): NodesByName => new Map(nodes.map((node) => [node.metadata.name, node]));

/**
 * Watches this home's pods, in every namespace where it created something, and the nodes, while there is a listener.
 * `KubernetesCluster` uses this state, and asks the API server where the state is missing or not trusted any more.
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
  listen(onChange: () => void, signal: AbortSignal, namespaces: readonly NamespaceRef[]): void {
    if (signal.aborted) return;
    this.#lingering?.();
    this.#running ??= new AbortController();
    // A separate function for each call: the same callback may be registered twice.
    const listener = (): void => onChange();
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#removeListener(listener), { once: true });
    for (const namespace of namespaces) this.add(namespace);
  }

  /** Watches a namespace from now on, because it may have machines. */
  add({ context, namespace }: NamespaceRef): void {
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

  /** This home's pods in a namespace; undefined where they are not watched, or the watch is not trusted now. */
  pods(context: string, namespace: string): PodsByMachine | undefined {
    return this.#known(this.#pods.get(`${context}/${namespace}`));
  }

  /** All nodes of a context; undefined as with `pods`. */
  nodes(context: string): NodesByName | undefined {
    return this.#known(this.#nodes.get(context));
  }

  #known<T extends KubeObject, Index>(watched: Watched<T, Index> | undefined): Index | undefined {
    if (watched?.list === undefined || watched.isUnreachable || !watched.list.isSynced) return undefined;
    const lastSeenAt = watched.list.lastSeenAt ?? Number.NEGATIVE_INFINITY;
    if (this.#deps.clock.monotonic() - lastSeenAt >= confirmedMs) return undefined;
    watched.ordered ??= watched.order(watched.list.items);
    return watched.ordered;
  }

  #watch<T extends KubeObject, Index>({ context, path, selection, signal, order, keep }: ToWatch<T, Index>): Watched<T, Index> {
    const watched: Watched<T, Index> = { list: undefined, order, ordered: undefined, isUnreachable: false };
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
          watched.isUnreachable = why !== undefined;
          this.#notify();
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

  /**
   * Retries with backoff. Until a watch begins, for example before a login, `inspect` asks the API server and reports
   * its error.
   */
  #untilBegun(begin: () => Promise<void>, signal: AbortSignal, failures = 0): void {
    if (signal.aborted) return;
    const { clock, random } = this.#deps;
    begin().catch(() => {
      clock.after(delayMs(retry, failures + 1, random), () => this.#untilBegun(begin, signal, failures + 1));
    });
  }

  #onChange(path: string, changes: readonly ObjectChange<KubeObject>[]): void {
    if (path !== pathOfAll('Node')) return this.#notify();
    // Nodes change all the time, mostly in fields without effect here.
    if (!changes.some(({ before, after }) => readiness(before) !== readiness(after))) return;
    this.#notify();
    // A node that stays silent is acted upon a little later: listeners must poll again then.
    this.#deps.clock.after(lastingMs + 50, () => this.#notify());
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #removeListener(listener: () => void): void {
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

/** Whether the user may list a collection at all: without the right, a watch would be refused every few seconds. */
export async function mayList(
  api: KubeApi,
  path: string,
  selection: { readonly labelSelector?: string },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await api.text(path, { query: { limit: '1', ...selection }, signal });
    return true;
  } catch (error) {
    return !isDenied(error);
  }
}
