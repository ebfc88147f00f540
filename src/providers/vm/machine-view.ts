import type { Clock } from '../../shared/clock.ts';
import { hasTags, type ListedMachine, type MachineId } from '../provider.ts';
import type { VmMachine, VmRef, VmStatus } from './driver.ts';
import type { Tags } from './tags.ts';

/** A machine as it was last seen. */
export type MachineSight = Pick<VmMachine, 'status' | 'notice' | 'isSpot' | 'publicHost' | 'privateHost' | 'tags'>;

type AskForMachines = (instanceIds: readonly string[]) => Promise<readonly VmMachine[]>;

/** ms. Callers poll a booting machine twice a second, but clouds limit calls. */
const bootingRememberedMs = 1_000;
/** ms. The cloud may show an outdated state for this long after a machine was created or removed. */
export const settlingMs = 60_000;
/** ms. The cloud may show a machine's end before the reason; a launch waits this long for the reason. */
const reasonMs = 5_000;

/** The cloud's view of machines, corrected with what this process just created or removed. */
export class MachineView {
  readonly #clock: Clock;
  readonly #title: string;
  readonly #seen = new Map<MachineId, { readonly sight: MachineSight; readonly at: number }>();
  readonly #made = new Map<MachineId, { readonly tags: Tags; readonly at: number }>();
  readonly #removed = new Map<MachineId, number>();
  /** Since when a machine is gone without a reason. */
  readonly #goneSince = new Map<MachineId, number>();

  constructor(clock: Clock, title: string) {
    this.#clock = clock;
    this.#title = title;
  }

  wasMade(id: MachineId, tags: Tags): void {
    this.#removed.delete(id);
    this.#made.set(id, { tags, at: this.#clock.monotonic() });
  }

  wasRemoved(id: MachineId): void {
    this.#made.delete(id);
    this.#seen.delete(id);
    this.#goneSince.delete(id);
    this.#removed.set(id, this.#clock.monotonic());
  }

  /** Invalidates what is known, because the machine is about to change. */
  willChange(id: MachineId): void {
    this.#seen.delete(id);
  }

  isJustMade(id: MachineId): boolean {
    const made = this.#made.get(id);
    return made !== undefined && this.#clock.monotonic() - made.at < settlingMs;
  }

  isRemoved(id: MachineId): boolean {
    return this.#removed.has(id);
  }

  /** Machines with these tags that this process created and the cloud may not show yet. */
  justMade(tags: Tags): readonly ListedMachine[] {
    return [...this.#made]
      .filter(([id, made]) => this.isJustMade(id) && hasTags(made.tags, tags))
      .map(([id, made]) => ({ id, tags: made.tags }));
  }

  /** Undefined when the last sight is older. */
  lastSight(id: MachineId, withinMs: number): MachineSight | undefined {
    const seen = this.#seen.get(id);
    return seen !== undefined && this.#clock.monotonic() - seen.at < withinMs ? seen.sight : undefined;
  }

  /** Asks once for all machines whose last sight is too old. */
  async inspect(
    ask: AskForMachines,
    machines: ReadonlyMap<MachineId, VmRef>,
    isBooting: (id: MachineId) => boolean,
  ): Promise<ReadonlyMap<MachineId, MachineSight>> {
    const now = this.#clock.monotonic();
    const stale = [...machines].filter(([id]) => {
      const seen = this.#seen.get(id);
      return seen === undefined || now - seen.at >= bootingRememberedMs || !isBooting(id);
    });
    const shown = stale.length === 0 ? [] : await ask(stale.map(([, { instanceId }]) => instanceId));
    const byId = new Map(shown.map((machine) => [machine.instanceId, machine]));
    for (const [id, { instanceId }] of stale) this.#seen.set(id, { sight: this.#sightOf(id, byId.get(instanceId)), at: now });
    return new Map([...machines.keys()].map((id) => [id, this.#seen.get(id)?.sight ?? unseen]));
  }

  #sightOf(id: MachineId, machine: VmMachine | undefined): MachineSight {
    // Only the cloud knows why a machine is gone.
    if (this.#removed.has(id)) return withStatus(machine?.status.state === 'gone' ? machine.status : { state: 'gone', reason: 'deleted' });
    if (machine !== undefined) return this.#mayGetReason(id, machine.status) ? { ...machine, status: { state: 'booting' } } : machine;
    if (this.isJustMade(id)) return withStatus({ state: 'booting' });
    return this.#made.has(id) ? withStatus(neverShown(this.#title)) : unseen;
  }

  /** The cloud may still show the reason of a new machine's end. The reason decides the next launch and its time. */
  #mayGetReason(id: MachineId, shown: VmStatus): boolean {
    if (shown.state !== 'gone' || shown.reason !== 'unknown' || shown.message !== undefined || !this.isJustMade(id)) return false;
    const now = this.#clock.monotonic();
    const since = this.#goneSince.get(id) ?? now;
    this.#goneSince.set(id, since);
    return now - since < reasonMs;
  }
}

const neverShown = (title: string): VmStatus => ({
  state: 'gone',
  reason: 'unknown',
  mayPass: true,
  message: `${title} accepted it, and shows no such instance ${settlingMs / 1_000} s later.`,
});

const withStatus = (status: VmStatus): MachineSight => ({
  status,
  notice: undefined,
  isSpot: false,
  publicHost: undefined,
  privateHost: undefined,
  tags: {},
});

const unseen = withStatus({ state: 'gone', reason: 'unknown' });
