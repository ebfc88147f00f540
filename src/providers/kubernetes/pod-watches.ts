import type { KubeApi, KubeObject } from '../../kubernetes/kube-api.ts';
import { pathOfAll } from '../../kubernetes/paths.ts';
import type { Pod } from '../../kubernetes/pod.ts';
import { WatchedList, type ObjectChange } from '../../kubernetes/watched-list.ts';
import { delayMs, type Backoff } from '../../shared/backoff.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { isDenied } from './errors.ts';
import { ownLabels } from './names.ts';
import { countedNode, isNodeReady, type Node } from './nodes/node-facts.ts';
import { lastingMs } from './nodes/node-health.ts';

/** Watches continue for this long after their last listener, ms: callers wait, ask and wait again. */
const lingerMs = 30_000;
/** Without confirmation for this long, ms, a watch is not trusted; API servers confirm once a minute. */
const confirmedMs = 100_000;

/** Each attempt to begin a watch may run the user's login program. */
const retry: Backoff = { firstMs: 1_000, longestMs: 30_000, jitter: 0.5 };

/** A namespace of a context. */
export interface NamespaceRef {
  readonly context: string;
  readonly namespace: string;
}

/** Pods by the base name of their machine. */
export type PodsByMachine = ReadonlyMap<string, readonly Pod[]>;
type NodesByName = ReadonlyMap<string, Node>;

/** Groups pods by machine. */
export function byMachine(pods: readonly Pod[]): PodsByMachine {
  return Map.groupBy(pods, ({ metadata }) => metadata.labels?.[ownLabels.machine] ?? '');
}

const byName = (nodes: readonly Node[]): NodesByName => new Map(nodes.map((node) => [node.metadata.name, node]));

/** A watch's listeners. Calls `onEnd` when there was none for `lingerMs`. */
export class Listeners {
  readonly #all = new Set<() => void>();
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #lingering: CancelTimer | undefined;

  constructor(clock: Clock, onEnd: () => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  get areNone(): boolean {
    return this.#all.size === 0;
  }

  add(onChange: () => void, signal: AbortSignal): void {
    this.#lingering?.();
    // The same callback may be registered twice.
    const listener = (): void => onChange();
    this.#all.add(listener);
    signal.addEventListener('abort', () => this.#remove(listener), { once: true });
  }

  notify(): void {
    for (const listener of this.#all) listener();
  }

  #remove(listener: () => void): void {
    this.#all.delete(listener);
    if (this.areNone) this.#lingering = this.#clock.after(lingerMs, this.#onEnd);
  }
}

/**
 * While there is a listener, watches the nodes, and this home's pods in every namespace where it created something.
 * `KubernetesCluster` asks the API server where this state is missing or not trusted.
 */
export class PodWatches {
  readonly #deps: { readonly clock: Clock; readonly random: Random };
  readonly #api: (context: string) => Promise<KubeApi>;
  readonly #listeners: Listeners;
  readonly #pods = new Map<string, () => PodsByMachine | undefined>();
  readonly #nodes = new Map<string, () => NodesByName | undefined>();
  #running: AbortController | undefined;

  constructor(deps: { readonly clock: Clock; readonly random: Random }, api: (context: string) => Promise<KubeApi>) {
    this.#deps = deps;
    this.#api = api;
    this.#listeners = new Listeners(deps.clock, () => {
      this.#running?.abort();
      this.#running = undefined;
      this.#pods.clear();
      this.#nodes.clear();
    });
  }

  listen(onChange: () => void, signal: AbortSignal, namespaces: readonly NamespaceRef[]): void {
    if (signal.aborted) return;
    this.#running ??= new AbortController();
    this.#listeners.add(onChange, signal);
    for (const namespace of namespaces) this.add(namespace);
  }

  add({ context, namespace }: NamespaceRef): void {
    if (this.#running === undefined) return;
    const { signal } = this.#running;
    const key = `${context}/${namespace}`;
    if (!this.#pods.has(key)) {
      const options = { labelSelector: ownLabels.machine, signal };
      this.#pods.set(key, this.#watch(context, pathOfAll('Pod', namespace), byMachine, options));
    }
    if (!this.#nodes.has(context)) this.#nodes.set(context, this.#watch(context, pathOfAll('Node'), byName, { keep: countedNode, signal }));
  }

  /** Undefined: the pods are not watched, or the watch is not trusted now. */
  pods(context: string, namespace: string): PodsByMachine | undefined {
    return this.#pods.get(`${context}/${namespace}`)?.();
  }

  nodes(context: string): NodesByName | undefined {
    return this.#nodes.get(context)?.();
  }

  /** Returns a getter of the index that `order` makes; it returns undefined while the watch is not trusted. */
  #watch<T extends KubeObject, Index>(
    context: string,
    path: string,
    order: (items: readonly T[]) => Index,
    { keep, signal, ...selection }: { readonly keep?: (object: T) => T; readonly labelSelector?: string; readonly signal: AbortSignal },
  ): () => Index | undefined {
    let list: WatchedList<T> | undefined;
    let isUnreachable = false;
    // Kept until the next change: machines are inspected one by one.
    let index: Index | undefined;
    const begin = async (): Promise<void> => {
      const api = await this.#api(context);
      if (!(await mayList(api, path, selection, signal))) return;
      if (signal.aborted) return;
      const onTrouble = (why: string | undefined): void => {
        isUnreachable = why !== undefined;
        this.#listeners.notify();
      };
      list = new WatchedList<T>(path, selection, { ...this.#deps, api, signal, keep, onTrouble });
      list.onChange((changes) => {
        index = undefined;
        this.#onChange(path, changes);
      });
    };
    this.#untilBegun(begin, signal);
    return () => {
      const lastSeenAt = isUnreachable ? undefined : list?.lastSeenAt;
      if (list === undefined || lastSeenAt === undefined || this.#deps.clock.monotonic() - lastSeenAt >= confirmedMs) return undefined;
      return (index ??= order(list.items));
    };
  }

  /** Until a watch begins, for example before a login, `inspect` asks the API server. */
  #untilBegun(begin: () => Promise<void>, signal: AbortSignal, failures = 0): void {
    if (signal.aborted) return;
    const { clock, random } = this.#deps;
    begin().catch(() => {
      clock.after(delayMs(retry, failures + 1, random), () => this.#untilBegun(begin, signal, failures + 1));
    });
  }

  #onChange(path: string, changes: readonly ObjectChange<KubeObject>[]): void {
    if (path !== pathOfAll('Node')) return this.#listeners.notify();
    // Nodes change all the time, mostly without effect here.
    if (!changes.some(({ before, after }) => readiness(before) !== readiness(after))) return;
    this.#listeners.notify();
    // A silent node is acted upon a little later: listeners must poll again then.
    this.#deps.clock.after(lastingMs + 50, () => this.#listeners.notify());
  }
}

const readiness = (node: Node | undefined): boolean | undefined => node && isNodeReady(node);

/** Whether the user may list a collection: if not, a watch would be refused every few seconds. */
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
