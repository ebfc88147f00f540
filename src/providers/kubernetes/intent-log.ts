import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ProviderContext } from '../registry.ts';
import type { KubernetesClusters } from './kubernetes-clusters.ts';
import { IntentStore, mayHave, type NamespaceIntent } from './intent-store.ts';

/** Limit for a Kubernetes cluster in which this home should have no resources, ms. */
const unrecordedMs = 5_000;

/** A namespace of a context. */
type NamespaceRef = Pick<NamespaceIntent, 'context' | 'namespace'>;

type Tags = Readonly<Record<string, string>>;
type Work<T> = (namespaceRef: NamespaceRef, signal: AbortSignal | undefined) => Promise<T>;

/**
 * Inventory of the namespaces where this home has or may have resources. Each is recorded, watched from then on, and
 * asked with all others.
 */
export class IntentLog {
  readonly store: IntentStore;
  readonly #context: ProviderContext;
  readonly #clusters: KubernetesClusters;

  constructor(context: ProviderContext, clusters: KubernetesClusters) {
    this.store = new IntentStore(context.paths);
    this.#context = context;
    this.#clusters = clusters;
  }

  /** Records an intent: this home is about to create a resource in the namespace. */
  record(intent: NamespaceIntent): void {
    this.store.put(intent);
    this.#clusters.watches.add(intent);
  }

  /** A recorded machine id names this namespace. */
  addKnown({ context, namespace }: NamespaceRef): void {
    this.store.addKnown(context, namespace);
    this.#clusters.watches.add({ context, namespace });
  }

  /** Forgets an owner without any remaining resources. */
  forget(ownerKey: string): void {
    for (const intent of this.store.list())
      if ([intent.tags['svc-service-key'], intent.tags['svc-owner']].includes(ownerKey)) this.store.remove(intent);
  }

  /**
   * Runs `work` in each namespace where this home created resources, and in those of the current configuration. Throws
   * the first failure of a namespace that may have resources with these tags; ignores failures of others.
   */
  async inAllNamespaces<T>(tags: Tags, signal: AbortSignal | undefined, work: Work<T>): Promise<readonly T[]> {
    const recorded = new Map<string, NamespaceRef>();
    for (const intent of this.store.list()) if (mayHave(intent, tags)) recorded.set(`${intent.context}/${intent.namespace}`, intent);
    const recordedResults = Promise.allSettled([...recorded.values()].map((namespaceRef) => work(namespaceRef, signal)));
    const others = Promise.all((await this.#clusters.known()).usable.map((context) => this.#unrecorded(context, recorded, signal, work)));
    const results = await recordedResults;
    signal?.throwIfAborted();
    const found = results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
    return [...found, ...(await others).flat()];
  }

  async #unrecorded<T>(
    context: string,
    recorded: ReadonlyMap<string, unknown>,
    signal: AbortSignal | undefined,
    work: Work<T>,
  ): Promise<readonly T[]> {
    const ask = async (inner: AbortSignal): Promise<readonly T[]> => {
      const namespace = await this.#clusters.namespaceOf(context);
      return recorded.has(`${context}/${namespace}`) ? [] : [await work({ context, namespace }, inner)];
    };
    try {
      return await withDeadline(this.#context.clock, unrecordedMs, ask, () => new SvcError('SVC_KUBERNETES', 'no answer'), signal);
    } catch {
      // This home should have no resources there: the failure is ignored.
      return [];
    }
  }
}
