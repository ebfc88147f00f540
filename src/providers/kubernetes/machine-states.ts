import type { Clock } from '../../shared/clock.ts';
import type { MachineId, MachineStatus } from '../provider.ts';
import type { KubernetesClusters } from './kubernetes-clusters.ts';
import { type MachineRef, readMachineId } from './names.ts';
import type { NamespaceInventory } from './namespace-inventory.ts';
import type { MachineSight } from './kubernetes-cluster.ts';

interface NamedMachine {
  readonly id: MachineId;
  readonly ref: MachineRef;
}

const removedStatus: MachineStatus = { state: 'gone', reason: 'deleted' };

/** Longer than an unconfirmed watch is trusted, ms: a watch may still show a removed machine's pod. */
const rememberedMs = 120_000;

/** Machines' status, with facts that a Kubernetes cluster alone does not know. */
export class MachineStates {
  readonly #clusters: Pick<KubernetesClusters, 'cluster'>;
  readonly #namespaces: Pick<NamespaceInventory, 'addKnown'>;
  readonly #patience: Patience;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Machines that count as gone, with the time when the last pod was gone (monotonic ms; undefined until then). */
  readonly #removed = new Map<MachineId, number | undefined>();
  readonly #last = new Map<MachineId, MachineStatus>();

  constructor(clock: Clock, clusters: Pick<KubernetesClusters, 'cluster'>, namespaces: Pick<NamespaceInventory, 'addKnown'>) {
    this.#clock = clock;
    this.#clusters = clusters;
    this.#namespaces = namespaces;
    this.#patience = new Patience(clock);
  }

  /** An earlier machine of this name may have been removed. */
  made(id: MachineId): void {
    this.#removed.delete(id);
  }

  /** `isGone`: the Kubernetes cluster has no pod of it any more. */
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

  async of(ids: readonly MachineId[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    signal?.throwIfAborted();
    const machines = ids.flatMap((id): readonly NamedMachine[] => {
      const ref = readMachineId(id);
      return ref === undefined ? [] : [{ id, ref }];
    });
    const groups = [...Map.groupBy(machines, ({ ref }) => `${ref.context}/${ref.namespace}`).values()];
    const results = await Promise.allSettled(groups.map((group) => this.#inspect(group, signal)));
    signal?.throwIfAborted();
    const statuses = new Map<MachineId, MachineStatus>(ids.map((id) => [id, { state: 'gone', reason: 'unknown' }]));
    for (const [index, result] of results.entries())
      for (const { id } of groups[index] ?? []) {
        // Machines of a silent Kubernetes cluster keep their last status.
        const last = this.#removed.has(id) ? removedStatus : this.#last.get(id);
        if (result.status === 'rejected' && (last === undefined || results.length === 1)) throw result.reason;
        const status = result.status === 'fulfilled' ? result.value.get(id) : last;
        if (status !== undefined) statuses.set(id, status);
      }
    return statuses;
  }

  async #inspect(machines: readonly NamedMachine[], signal: AbortSignal | undefined): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    const refs = machines.map(({ ref }) => ref);
    const [first] = refs;
    if (first === undefined) return new Map();
    this.#namespaces.addKnown(first);
    const found = await (await this.#clusters.cluster(first.context)).statuses(refs, signal);
    const statuses = new Map<MachineId, MachineStatus>();
    for (const { id, ref } of machines) {
      const sight = found.get(ref.base);
      if (sight === undefined) continue;
      if (!sight.hasPods && this.#removed.has(id)) this.#removed.set(id, this.#removed.get(id) ?? this.#clock.monotonic());
      const isRemoved = this.#removed.has(id) && sight.status.state !== 'gone';
      const status: MachineStatus = isRemoved ? removedStatus : this.#patience.judge(id, sight);
      statuses.set(id, status);
      if (status.state === 'gone') this.#last.delete(id);
      else this.#last.set(id, status);
    }
    return statuses;
  }
}

/** A machine that waits too long for room counts as gone. */
export class Patience {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #waitingSince = new Map<MachineId, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The wait counts from when this process first saw it. */
  judge(id: MachineId, { status, isWaitingForRoom, patienceSeconds }: Omit<MachineSight, 'hasPods'>): MachineStatus {
    if (status.state !== 'booting' || !isWaitingForRoom || patienceSeconds === undefined) {
      this.#waitingSince.delete(id);
      return status;
    }
    const now = this.#clock.monotonic();
    const since = this.#waitingSince.get(id) ?? now;
    this.#waitingSince.set(id, since);
    if (now - since < patienceSeconds * 1_000) return { ...status, isQueued: true };
    return {
      state: 'gone',
      reason: 'unknown',
      mayPass: true,
      refusal: { kind: 'capacity', scope: 'zone' },
      message: `No node within ${patienceSeconds} s: ${status.message ?? 'its cluster does not say why.'}`,
    };
  }

  forget(id: MachineId): void {
    this.#waitingSince.delete(id);
  }
}
