import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import { hasTags } from '../has-tags.ts';
import type {
  CallOptions,
  ListedMachine,
  MachineId,
  MachineNode,
  MachineSpec,
  MachineStatus,
  Offer,
  OfferList,
  Provider,
  ProviderCheck,
} from '../provider.ts';
import type { FakePlace } from './fake-place.ts';
import { FakeRemote } from './fake-remote.ts';

/** A place in memory that can be slow, full, forgetful and unfaithful: for trying what the control loops make of it. */
export class FakeProvider implements Provider {
  readonly name: string;
  readonly capabilities = { spot: true, stopResume: false, customImages: false, openPorts: true, multiNode: true, gpus: true };
  readonly #place: FakePlace;

  constructor(place: FakePlace, name = 'fake') {
    this.#place = place;
    this.name = name;
  }

  check(): Promise<ProviderCheck> {
    return Promise.resolve({ enabled: true, summary: 'a place in memory', remedies: [], details: [], sharedPorts: undefined });
  }

  async offers(resources: Resources, options: CallOptions): Promise<OfferList> {
    return this.#call(options, () => {
      const offers = this.#place.offers.filter((offer) => satisfies(offer, resources)).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
      return { offers, whyNone: offers.length > 0 ? undefined : `Nothing here has what is asked for${describe(resources)}.` };
    });
  }

  async create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId> {
    const { afterMs = 0, refusal } = this.#place.conduct.answerTo(offer);
    if (afterMs > 0) await this.#wait(afterMs, options.signal);
    return this.#call(options, () => {
      const { living, conduct } = this.#place;
      const known = living.find((machine) => machine.key === key);
      if (known !== undefined) return known.id;
      if (refusal !== undefined) throw refusal;
      if (conduct.refuseWith === 'quota') throw new SvcError('SVC_QUOTA', `${offer.region} refuses for want of quota.`);
      if (conduct.refuseWith === 'capacity' || living.length >= conduct.capacity) {
        throw new SvcError('SVC_CAPACITY', `${offer.region} has no machine of type ${offer.instanceType} now.`);
      }
      return this.#place.add(key, offer, spec).id;
    });
  }

  async inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    return this.#call(options, () => new Map(ids.map((id) => [id, this.#statusOf(id)] as const)));
  }

  async destroy(id: MachineId, options: CallOptions): Promise<void> {
    await this.#call(options, () => {
      this.#place.machines.get(id)?.end('deleted');
    });
  }

  async list(tags: Readonly<Record<string, string>>, options: CallOptions): Promise<readonly ListedMachine[]> {
    return this.#call(options, () =>
      this.#place.living.filter((machine) => hasTags(machine.tags, tags)).map((machine) => ({ id: machine.id, tags: machine.tags })),
    );
  }

  remote(id: MachineId): Remote {
    const machine = this.#place.machines.get(id);
    if (machine === undefined) throw new SvcError('SVC_MACHINE_LOST', `There is no machine ${id}.`);
    return new FakeRemote(machine, this.#place.clock);
  }

  async nodes(id: MachineId, options: CallOptions): Promise<readonly MachineNode[]> {
    return this.#call(options, () => {
      const machine = this.#place.machines.get(id);
      if (machine?.isRunning !== true) throw new SvcError('SVC_MACHINE_LOST', `There is no machine ${id}.`);
      const { clock } = this.#place;
      return machine.nodes.map((node) => ({ rank: node.rank, ip: `10.0.0.${node.rank + 1}`, remote: new FakeRemote(node, clock) }));
    });
  }

  watch(onChange: () => void, signal: AbortSignal): void {
    if (!this.#place.conduct.tells || signal.aborted) return;
    const { watchers } = this.#place;
    // A function of its own for each caller, as two may give the same.
    const tell = (): void => onChange();
    watchers.add(tell);
    signal.addEventListener('abort', () => watchers.delete(tell), { once: true });
  }

  async stop(): Promise<void> {
    throw new SvcError('SVC_NOT_SUPPORTED', 'This place cannot stop machines.');
  }

  async start(): Promise<void> {
    throw new SvcError('SVC_NOT_SUPPORTED', 'This place cannot stop machines.');
  }

  async release(ownerKey: string, options: CallOptions): Promise<void> {
    await this.#call(options, () => this.#place.releases.push(ownerKey));
  }

  #statusOf(id: MachineId): MachineStatus {
    const machine = this.#place.machines.get(id);
    if (machine === undefined) return { state: 'gone', reason: 'unknown' };
    const { goneReason: reason, message, isHopeless } = machine;
    const said = message === undefined ? {} : { message };
    if (reason !== undefined) return { state: 'gone', reason, ...said, ...(isHopeless && { isHopeless }) };
    if (!machine.isRunning) return { state: 'booting', ...said };
    return { state: 'running', ...(machine.notice !== undefined && { notice: machine.notice }) };
  }

  async #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (Number.isFinite(ms)) return this.#place.clock.sleep(ms, signal);
    const { promise, resolve } = Promise.withResolvers<void>();
    signal?.addEventListener('abort', () => resolve(), { once: true });
    return promise;
  }

  /** What is done is done, though its reply may be lost. */
  async #call<Result>({ signal }: CallOptions, act: () => Result): Promise<Result> {
    signal?.throwIfAborted();
    const { clock, conduct, random } = this.#place;
    if (conduct.callMs > 0) await clock.sleep(conduct.callMs, signal);
    signal?.throwIfAborted();
    conduct.onCall('before');
    signal?.throwIfAborted();
    const result = act();
    conduct.onCall('after');
    if (conduct.lostReplies > 0 && random() < conduct.lostReplies) {
      throw new SvcError('SVC_MACHINE_LOST', 'The reply of the place was lost.');
    }
    return result;
  }
}

function satisfies(offer: Offer, resources: Resources): boolean {
  const { accelerator, cpus, memory, region, useSpot } = resources;
  if (useSpot !== offer.spot || (region !== undefined && region !== offer.region)) return false;
  if (offer.cpus < (cpus?.value ?? 0) || offer.memoryGb < (memory?.value ?? 0)) return false;
  if (accelerator === undefined) return true;
  return offer.accelerator?.name.toLowerCase() === accelerator.name.toLowerCase() && offer.accelerator.count >= accelerator.count;
}

function describe({ accelerator }: Resources): string {
  return accelerator === undefined ? '' : `: ${accelerator.count}x ${accelerator.name}`;
}
