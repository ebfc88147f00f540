import { join } from 'node:path';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import { fingerprint } from '../../shared/hex.ts';
import { isObject } from '../../shared/json.ts';
import { IntentLog } from '../intent-log.ts';
import type { ProviderContext } from '../registry.ts';
import type { KubernetesClusters } from './kubernetes-clusters.ts';
import { textEntries } from './names.ts';

/** Limit for a Kubernetes cluster without known resources of this home, ms. */
const unrecordedMs = 5_000;

/** A namespace in which an owner may have resources. */
interface NamespaceIntent {
  readonly context: string;
  readonly namespace: string;
  /** Shared by all of an owner's resources; without an owner, all tags of the machine. */
  readonly tags: Readonly<Record<string, string>>;
}

type NamespaceRef = Pick<NamespaceIntent, 'context' | 'namespace'>;

type Tags = Readonly<Record<string, string>>;
type Work<T> = (namespaceRef: NamespaceRef, signal: AbortSignal | undefined) => Promise<T>;

/**
 * The namespaces where this home may have resources, by owner. A namespace is recorded before a create, and watched
 * from then on. An unreachable Kubernetes cluster blocks only owners that may have resources in it.
 */
export class NamespaceInventory {
  readonly #context: ProviderContext;
  readonly #clusters: KubernetesClusters;
  readonly #intents: IntentLog<NamespaceIntent>;
  /** Namespaces of recorded machine ids: the only source in a new home. */
  readonly #known = new Map<string, NamespaceIntent>();

  constructor(context: ProviderContext, clusters: KubernetesClusters) {
    this.#context = context;
    this.#clusters = clusters;
    this.#intents = new IntentLog({ dir: join(context.paths.home, 'kubernetes', 'notes'), ending: '.json', read: readIntent });
  }

  list(): readonly NamespaceIntent[] {
    return [...this.#intents.list(), ...this.#known.values()];
  }

  /** Called before a create in the namespace. */
  record(intent: NamespaceIntent): void {
    this.#intents.record(nameOf(intent), intent);
    this.#clusters.watches.add(intent);
  }

  /** For namespaces of recorded machine ids, whichever home recorded them. */
  addKnown({ context, namespace }: NamespaceRef): void {
    this.#known.set(`${context}/${namespace}`, { context, namespace, tags: {} });
    this.#clusters.watches.add({ context, namespace });
  }

  forget(ownerKey: string): void {
    for (const intent of this.#intents.list())
      if ([intent.tags['svc-service-key'], intent.tags['svc-owner']].includes(ownerKey)) this.#intents.forget(nameOf(intent));
  }

  /**
   * Works in all namespaces that are recorded or configured. Throws the first failure of a namespace that may have
   * resources with these tags; ignores failures of others.
   */
  async inAllNamespaces<T>(tags: Tags, signal: AbortSignal | undefined, work: Work<T>): Promise<readonly T[]> {
    const recorded = new Map<string, NamespaceRef>();
    for (const intent of this.list()) if (mayHave(intent, tags)) recorded.set(`${intent.context}/${intent.namespace}`, intent);
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
      // This home should have no resources there.
      return [];
    }
  }
}

function mayHave(intent: NamespaceIntent, tags: Tags): boolean {
  return Object.entries(tags).every(([name, value]) => intent.tags[name] === undefined || intent.tags[name] === value);
}

function nameOf({ context, namespace, tags }: NamespaceIntent): string {
  const sorted = Object.entries(tags).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return fingerprint(JSON.stringify([context, namespace, sorted]));
}

function readIntent(value: unknown): NamespaceIntent | undefined {
  if (!isObject(value)) return undefined;
  const { context, namespace, tags } = value;
  if (typeof context !== 'string' || typeof namespace !== 'string' || !isObject(tags)) return undefined;
  return { context, namespace, tags: textEntries(tags) };
}
