import type { KubeApi } from '../../kubernetes/kube-api.ts';
import type { Clock } from '../../shared/clock.ts';
import { isDenied } from './errors.ts';
import { isSpotNode } from './gpu-labels.ts';
import { isNodeReady } from './node-facts.ts';
import type { Node } from './objects.ts';
import { pathOfOne } from '../../kubernetes/paths.ts';

/** Why a node counts as lost. */
export interface NodeLoss {
  /** A sentence. */
  readonly message: string;
  /** Whether its cloud took it. */
  readonly isTaken: boolean;
}

/** A node that is not ready for so long, ms, is lost: shorter lapses pass by themselves. */
export const lostAfterMs = 5_000;
/** What was seen of a node holds so long, ms. */
const seenMs = 1_500;
/** Who may not read nodes is not asked again for so long, ms. */
const deniedMs = 60_000;

/** Labels and taints of nodes that are about to be taken away. */
const takingTaints = /preempt|spot|impending-node-termination|ToBeDeleted|karpenter\.sh\/disrupt|node-termination|shutdown/i;

/** Which nodes are lost: by what their cluster says of them, seen for a while. */
export class NodeHealth {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly node: Node | undefined; readonly at: number }>();
  /** Since when each is seen not to be ready, monotonic ms. */
  readonly #downSince = new Map<string, number>();
  #deniedAt: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The lost ones of some nodes; undefined where the user may not read nodes. `watched` are all nodes by name, where they are watched; of others the cluster is asked. */
  async losses(
    api: KubeApi,
    names: ReadonlySet<string>,
    watched: ReadonlyMap<string, Node> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ReadonlyMap<string, NodeLoss> | undefined> {
    const now = this.#clock.monotonic();
    if (watched === undefined && this.#deniedAt !== undefined && now - this.#deniedAt < deniedMs) return undefined;
    const losses = new Map<string, NodeLoss>();
    try {
      await Promise.all(
        [...names].map(async (name) => {
          // One that is not among them may be too new to have been told of.
          const node = watched?.get(name) ?? (await this.#ask(api, name, signal));
          const loss = this.#judge(name, node);
          if (loss !== undefined) losses.set(name, loss);
        }),
      );
    } catch (error) {
      if (!isDenied(error)) throw error;
      this.#deniedAt = now;
      return undefined;
    }
    return losses;
  }

  async #ask(api: KubeApi, name: string, signal: AbortSignal | undefined): Promise<Node | undefined> {
    const seen = this.#seen.get(name);
    const now = this.#clock.monotonic();
    if (seen !== undefined && now - seen.at < seenMs) return seen.node;
    const node = await api.get<Node>(pathOfOne('Node', undefined, name), { signal });
    this.#seen.set(name, { node, at: now });
    return node;
  }

  #judge(name: string, node: Node | undefined): NodeLoss | undefined {
    if (node === undefined) return { message: `The node ${name} is no longer in the cluster.`, isTaken: false };
    if (isNodeReady(node)) {
      this.#downSince.delete(name);
      return undefined;
    }
    const now = this.#clock.monotonic();
    const since = this.#downSince.get(name) ?? now;
    this.#downSince.set(name, since);
    if (now - since < lostAfterMs) return undefined;
    const { reason, message } = node.status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
    const said = [reason, message].filter((part) => part !== undefined && part !== '').join(': ');
    const isTaken =
      isSpotNode(node.metadata.labels ?? {}) ||
      (node.spec?.taints ?? []).some(({ key }) => takingTaints.test(key)) ||
      takingTaints.test(said);
    return { message: `The node ${name} is not ready${said === '' ? '' : ` (${said.replace(/\.$/, '')})`}.`, isTaken };
  }
}
