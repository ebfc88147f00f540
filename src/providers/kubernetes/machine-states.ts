import type { Clock } from '../../shared/clock.ts';
import type { MachineId, MachineStatus } from '../provider.ts';
import type { Clusters } from './clusters.ts';
import { readMachineId, type MachineRef } from './names.ts';
import { Patience } from './patience.ts';
import type { Whereabouts } from './whereabouts.ts';

interface NamedMachine {
  readonly id: MachineId;
  readonly ref: MachineRef;
}

const removedStatus: MachineStatus = { state: 'gone', reason: 'deleted' };

/** A watch may show a pod for a while after its cluster has none of it any more, ms: longer than one is relied on that was not confirmed. */
const rememberedMs = 120_000;

/** How machines are, over all clusters; remembers what a cluster alone cannot know. */
export class MachineStates {
  readonly #clusters: Pick<Clusters, 'cluster'>;
  readonly #whereabouts: Pick<Whereabouts, 'tell'>;
  readonly #patience: Patience;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /**
   * What this process removed: it is gone whatever a cluster still shows. With the time at which its cluster had no pod of it any more, monotonic ms;
   * undefined until then.
   */
  readonly #removed = new Map<MachineId, number | undefined>();
  /** How machines that live were when somebody last looked. */
  readonly #last = new Map<MachineId, MachineStatus>();

  constructor(clock: Clock, clusters: Pick<Clusters, 'cluster'>, whereabouts: Pick<Whereabouts, 'tell'>) {
    this.#clock = clock;
    this.#clusters = clusters;
    this.#whereabouts = whereabouts;
    this.#patience = new Patience(clock);
  }

  /** It is being made, whether or not one of the same name was removed before. */
  made(id: MachineId): void {
    this.#removed.delete(id);
  }

  /** `isGone`: whether its cluster has no pod of it any more. What is gone for long is forgotten. */
  removed(id: MachineId, isGone: boolean): void {
    const now = this.#clock.monotonic();
    for (const [other, goneAt] of this.#removed) if (goneAt !== undefined && now - goneAt >= rememberedMs) this.#removed.delete(other);
    this.#removed.set(id, isGone ? now : undefined);
    this.#last.delete(id);
    this.#patience.forget(id);
  }

  wasRemoved(id: MachineId): boolean {
    return this.#removed.has(id);
  }

  /** As `Provider.inspect`. */
  async of(ids: readonly MachineId[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    signal?.throwIfAborted();
    const statuses = new Map<MachineId, MachineStatus>(ids.map((id) => [id, { state: 'gone', reason: 'unknown' }]));
    const machines = ids.flatMap((id): readonly NamedMachine[] => {
      const ref = readMachineId(id);
      return ref === undefined ? [] : [{ id, ref }];
    });
    const asked = [...Map.groupBy(machines, ({ ref }) => `${ref.context}/${ref.namespace}`).values()];
    const looks = await Promise.allSettled(asked.map((group) => this.#look(group, signal)));
    signal?.throwIfAborted();
    for (const look of looks) if (look.status === 'fulfilled') for (const [id, status] of look.value) statuses.set(id, status);
    // A cluster that does not answer must not hide what the others say; of its own machines what was last seen is told, if anything was.
    for (const [index, look] of looks.entries()) {
      if (look.status === 'fulfilled') continue;
      for (const { id } of asked[index] ?? []) {
        const last = this.#removed.has(id) ? removedStatus : this.#last.get(id);
        if (last === undefined || looks.length === 1) throw look.reason;
        statuses.set(id, last);
      }
    }
    return statuses;
  }

  /** Of machines of one namespace. */
  async #look(machines: readonly NamedMachine[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const refs = machines.map(({ ref }) => ref);
    const [first] = refs;
    if (first === undefined) return new Map();
    this.#whereabouts.tell(first);
    const found = await (await this.#clusters.cluster(first.context)).statuses(refs, signal);
    const statuses = new Map<MachineId, MachineStatus>();
    for (const { id, ref } of machines) {
      const sight = found.get(ref.base);
      if (sight === undefined) continue;
      if (!sight.isThere && this.#removed.has(id)) this.#removed.set(id, this.#removed.get(id) ?? this.#clock.monotonic());
      const isRemoved = this.#removed.has(id) && sight.status.state !== 'gone';
      const status: MachineStatus = isRemoved ? removedStatus : this.#patience.judge(id, sight);
      statuses.set(id, status);
      if (status.state === 'gone') this.#last.delete(id);
      else this.#last.set(id, status);
    }
    return statuses;
  }
}
