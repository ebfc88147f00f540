import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ProviderContext } from '../registry.ts';
import type { Clusters } from './clusters.ts';
import { ClusterNotes, mayHave, type ClusterNote } from './notes.ts';

/** A cluster where nothing of ours should be is not waited for longer, ms. */
const strangerMs = 5_000;

/** A namespace of a cluster. */
export type Where = Pick<ClusterNote, 'context' | 'namespace'>;

type Tags = Readonly<Record<string, string>>;
type Work<T> = (where: Where, signal: AbortSignal | undefined) => Promise<T>;

/** Where something of this home is or may be: what was noted, watched from then on, and asked as a whole. */
export class Whereabouts {
  readonly notes: ClusterNotes;
  readonly #context: ProviderContext;
  readonly #clusters: Clusters;

  constructor(context: ProviderContext, clusters: Clusters) {
    this.notes = new ClusterNotes(context.paths);
    this.#context = context;
    this.#clusters = clusters;
  }

  /** Something is about to be made there. */
  note(note: ClusterNote): void {
    this.notes.put(note);
    this.#clusters.watches.add(note);
  }

  /** Somebody recorded that there is a machine. */
  tell({ context, namespace }: Where): void {
    this.notes.tell(context, namespace);
    this.#clusters.watches.add({ context, namespace });
  }

  /** Nothing of an owner is left anywhere. */
  forget(ownerKey: string): void {
    for (const note of this.notes.list())
      if ([note.tags['svc-service-key'], note.tags['svc-owner']].includes(ownerKey)) this.notes.remove(note);
  }

  /**
   * Does something in each namespace where this home made something, and in those it would use now. Throws the first failure of one that may have
   * something with these tags; of others nobody hears.
   */
  async everywhere<T>(tags: Tags, signal: AbortSignal | undefined, work: Work<T>): Promise<readonly T[]> {
    const owing = new Map<string, Where>();
    for (const note of this.notes.list()) if (mayHave(note, tags)) owing.set(`${note.context}/${note.namespace}`, note);
    const owed = Promise.allSettled([...owing.values()].map((where) => work(where, signal)));
    const others = Promise.all((await this.#clusters.known()).usable.map((context) => this.#stranger(context, owing, signal, work)));
    const results = await owed;
    signal?.throwIfAborted();
    const found = results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
    return [...found, ...(await others).flat()];
  }

  async #stranger<T>(
    context: string,
    owing: ReadonlyMap<string, unknown>,
    signal: AbortSignal | undefined,
    work: Work<T>,
  ): Promise<readonly T[]> {
    const ask = async (inner: AbortSignal): Promise<readonly T[]> => {
      const namespace = await this.#clusters.namespaceOf(context);
      return owing.has(`${context}/${namespace}`) ? [] : [await work({ context, namespace }, inner)];
    };
    try {
      return await withDeadline(this.#context.clock, strangerMs, ask, () => new SvcError('SVC_KUBERNETES', 'no answer'), signal);
    } catch {
      // Nothing of this home should be there.
      return [];
    }
  }
}
