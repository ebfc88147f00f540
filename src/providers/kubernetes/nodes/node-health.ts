import { isSilenceWidespread } from '../../../domain/replica/silent-machines.ts';
import type { KubeApi } from '../../../kubernetes/kube-api.ts';
import { pathOfAll, pathOfOne } from '../../../kubernetes/paths.ts';
import type { Clock } from '../../../shared/clock.ts';
import { isDenied } from '../errors.ts';
import { isSpotNode } from './gpu-labels.ts';
import { countedNode, isNodeReady, type Node } from './node-facts.ts';

/** Why a node cannot report its pods. `message` is a sentence. */
export type NodeTrouble =
  | { readonly kind: 'removed'; readonly message: string }
  | {
      readonly kind: 'silent';
      readonly message: string;
      /** Whether its cloud reclaims it. */
      readonly isTaken: boolean;
      /** Without heartbeats, a kubelet does not end pods. A kubelet that only reports trouble does. */
      readonly hasNoHeartbeat: boolean;
      /** Whether it lasts long enough to act on: shorter lapses pass by themselves. */
      readonly isLasting: boolean;
      /** See `isSilenceWidespread`. */
      readonly isWidespread: boolean;
    };

/** Whether a pod's deletion needs force: the node's kubelet would never confirm it. */
export function needsForcedDeletion(trouble: NodeTrouble | undefined): boolean {
  return trouble?.kind === 'removed' || (trouble?.kind === 'silent' && trouble.isLasting && !trouble.isWidespread);
}

/** Whether a deleted pod may still run: only its kubelet could end it. */
export function isDeletionIdle(trouble: NodeTrouble | undefined): boolean {
  return trouble?.kind === 'silent' && trouble.hasNoHeartbeat;
}

/** svc acts on a node that is not ready for this long, ms: shorter lapses pass by themselves. */
export const lastingMs = 5_000;
/** A node's state stays valid for this long, ms. */
const seenMs = 1_500;
/** Backoff after the user was denied reading nodes, ms. */
const deniedMs = 60_000;

/** Taints and labels of nodes that the cloud or an autoscaler is about to remove. */
const takingTaints = /preempt|spot|impending-node-termination|ToBeDeleted|karpenter\.sh\/disrupt|node-termination|shutdown/i;

/** Finds nodes in trouble, by the Kubernetes cluster's reports over time. */
export class NodeHealth {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly node: Node | undefined; readonly at: number }>();
  /** Monotonic ms. A node that this process never saw ready may have been down for long: it is lasting at once. */
  readonly #downSince = new Map<string, number>();
  readonly #wasReady = new Set<string>();
  #all: { readonly nodes: readonly Node[]; readonly at: number } | undefined;
  #deniedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined: the user may not read nodes. Reads nodes that are not in `watched` from the API server. */
  async troubles(
    api: KubeApi,
    names: ReadonlySet<string>,
    watched: ReadonlyMap<string, Node> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, NodeTrouble> | undefined> {
    const now = this.#clock.monotonic();
    if (watched === undefined && this.#deniedAt !== undefined && now - this.#deniedAt < deniedMs) return undefined;
    try {
      const found = await Promise.all(
        // A node that the watch does not show may be newer than its last report.
        [...names].map(async (name) => [name, watched?.get(name) ?? (await this.#ask(api, name, signal))] as const),
      );
      const isDown = found.some(([, node]) => node !== undefined && !isNodeReady(node));
      const isWidespread = isDown && widespread(watched?.values() ?? (await this.#askAll(api, signal)));
      return new Map(
        found.flatMap(([name, node]) => {
          const trouble = this.#judge(name, node, isWidespread);
          return trouble === undefined ? [] : [[name, trouble]];
        }),
      );
    } catch (error) {
      if (!isDenied(error)) throw error;
      this.#deniedAt = now;
      return undefined;
    }
  }

  async #ask(api: KubeApi, name: string, signal: AbortSignal | undefined): Promise<Node | undefined> {
    const seen = this.#seen.get(name);
    const now = this.#clock.monotonic();
    if (seen !== undefined && now - seen.at < seenMs) return seen.node;
    const node = await api.get<Node>(pathOfOne('Node', undefined, name), { signal });
    this.#seen.set(name, { node, at: now });
    return node;
  }

  async #askAll(api: KubeApi, signal: AbortSignal | undefined): Promise<readonly Node[]> {
    const now = this.#clock.monotonic();
    if (this.#all !== undefined && now - this.#all.at < seenMs) return this.#all.nodes;
    const { items } = await api.list<Node>(pathOfAll('Node'), { keep: countedNode, signal });
    this.#all = { nodes: items, at: now };
    return items;
  }

  #judge(name: string, node: Node | undefined, isWidespread: boolean): NodeTrouble | undefined {
    if (node === undefined) return { kind: 'removed', message: `The node ${name} is no longer in the cluster.` };
    if (isNodeReady(node)) {
      this.#wasReady.add(name);
      this.#downSince.delete(name);
      return undefined;
    }
    const now = this.#clock.monotonic();
    const since = this.#downSince.get(name) ?? (this.#wasReady.has(name) ? now : Number.NEGATIVE_INFINITY);
    this.#downSince.set(name, since);
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
    const said = [ready?.reason, ready?.message].filter((part) => part !== undefined && part !== '').join(': ');
    const isTaken =
      isSpotNode(node.metadata.labels ?? {}) ||
      (node.spec?.taints ?? []).some(({ key }) => takingTaints.test(key)) ||
      takingTaints.test(said);
    return {
      kind: 'silent',
      message: `The node ${name} is not ready${said === '' ? '' : ` (${said.replace(/\.$/, '')})`}.`,
      isTaken,
      hasNoHeartbeat: ready?.status !== 'False',
      isLasting: now - since >= lastingMs,
      isWidespread,
    };
  }
}

function widespread(nodes: Iterable<Node>): boolean {
  const all = [...nodes];
  return isSilenceWidespread(all.filter((node) => !isNodeReady(node)).length, all.length);
}
