import type { Resources } from '../../domain/task.ts';
import type { Remote } from '../../remote/remote.ts';
import { SvcError } from '../../shared/errors.ts';
import {
  hasTags,
  type CallOptions,
  type ListedMachine,
  type ListOptions,
  type MachineId,
  type MachineNode,
  type MachineSpec,
  type MachineStatus,
  type Offer,
  type OfferList,
  type Provider,
  type ProviderCheck,
  type RegionsOptions,
} from '../provider.ts';
import type { FakeCloud } from './fake-cloud.ts';
import { FakeRemote } from './fake-remote.ts';

const denied = (region: string): SvcError => new SvcError('SVC_DENIED', `The account may not use the region ${region}.`);

/** A provider in memory for tests of the control loops. It can be slow or full, lose replies, and reclaim machines. */
export class FakeProvider implements Provider {
  readonly name: string;
  readonly capabilities = { spot: true, stopResume: false, customImages: false, openPorts: true, multiNode: true, gpus: true };
  readonly #cloud: FakeCloud;

  constructor(cloud: FakeCloud, name = 'fake') {
    this.#cloud = cloud;
    this.name = name;
  }

  check(): Promise<ProviderCheck> {
    return Promise.resolve({ enabled: true, summary: 'a place in memory', remedies: [], details: [], sharedPorts: undefined });
  }

  async offers(resources: Resources, options: CallOptions): Promise<OfferList> {
    return this.#call(options, () => {
      const offers = this.#cloud.offers.filter((offer) => satisfies(offer, resources)).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
      return { offers, whyNone: offers.length > 0 ? undefined : `Nothing here has what is asked for${describe(resources)}.` };
    });
  }

  async create(offer: Offer, spec: MachineSpec, key: string, options: CallOptions): Promise<MachineId> {
    const { afterMs = 0, refusal } = this.#cloud.conduct.answerTo(offer);
    if (afterMs > 0) await this.#wait(afterMs, options.signal);
    return this.#call(options, () => {
      const { living, conduct } = this.#cloud;
      const known = living.find((machine) => machine.key === key);
      if (known !== undefined) return known.id;
      if (refusal !== undefined) throw refusal;
      if (conduct.refuseWith === 'quota') throw new SvcError('SVC_QUOTA', `${offer.region} refuses for want of quota.`);
      if (conduct.refuseWith === 'capacity' || living.length >= conduct.capacity) {
        throw new SvcError('SVC_CAPACITY', `${offer.region} has no machine of type ${offer.instanceType} now.`);
      }
      return this.#cloud.add(key, offer, spec).id;
    });
  }

  async inspect(ids: readonly MachineId[], options: CallOptions): Promise<ReadonlyMap<MachineId, MachineStatus>> {
    return this.#call(options, () => {
      for (const id of ids) this.#denyMachine(id);
      return new Map(ids.map((id) => [id, this.#statusOf(id)] as const));
    });
  }

  async destroy(id: MachineId, options: CallOptions): Promise<void> {
    await this.#call(options, () => {
      this.#denyMachine(id);
      this.#cloud.machines.get(id)?.end('deleted');
    });
  }

  async list(tags: Readonly<Record<string, string>>, options: ListOptions): Promise<readonly ListedMachine[]> {
    return this.#call(options, () => {
      const { living, conduct } = this.#cloud;
      if (conduct.deniedRegion !== undefined) this.#skipRegion(conduct.deniedRegion, options);
      const shown = living.filter(({ offer, tags: its }) => offer.region !== conduct.deniedRegion && hasTags(its, tags));
      return shown.map((machine) => ({ id: machine.id, tags: machine.tags }));
    });
  }

  remote(id: MachineId): Remote {
    const machine = this.#cloud.machines.get(id);
    if (machine === undefined) throw new SvcError('SVC_MACHINE_LOST', `There is no machine ${id}.`);
    return new FakeRemote(machine, this.#cloud.clock);
  }

  async nodes(id: MachineId, options: CallOptions): Promise<readonly MachineNode[]> {
    return this.#call(options, () => {
      const machine = this.#cloud.machines.get(id);
      if (machine?.isRunning !== true) throw new SvcError('SVC_MACHINE_LOST', `There is no machine ${id}.`);
      const { clock } = this.#cloud;
      return machine.nodes.map((node) => ({ rank: node.rank, ip: `10.0.0.${node.rank + 1}`, remote: new FakeRemote(node, clock) }));
    });
  }

  watch(onChange: () => void, signal: AbortSignal): void {
    if (!this.#cloud.conduct.pushesChanges || signal.aborted) return;
    const { watchers } = this.#cloud;
    // Two callers may pass the same function, and a set would hold it only once.
    const notify = (): void => onChange();
    watchers.add(notify);
    signal.addEventListener('abort', () => watchers.delete(notify), { once: true });
  }

  async release(ownerKey: string, options: RegionsOptions): Promise<void> {
    await this.#call(options, () => {
      const { deniedRegion } = this.#cloud.conduct;
      if (deniedRegion !== undefined) this.#skipRegion(deniedRegion, options);
      this.#cloud.releases.push(ownerKey);
    });
  }

  #denyMachine(id: MachineId): void {
    const region = this.#cloud.machines.get(id)?.offer.region;
    if (region !== undefined && region === this.#cloud.conduct.deniedRegion) throw denied(region);
  }

  #skipRegion(region: string, { onDenied }: RegionsOptions): void {
    if (onDenied === undefined) throw denied(region);
    onDenied(denied(region));
  }

  #statusOf(id: MachineId): MachineStatus {
    const machine = this.#cloud.machines.get(id);
    if (machine === undefined) return { state: 'gone', reason: 'unknown' };
    const { goneReason: reason, message, isHopeless, notice, refusal, silence } = machine;
    const said = message === undefined ? {} : { message };
    if (reason !== undefined) return { state: 'gone', reason, ...said, ...(isHopeless && { isHopeless }), ...(refusal && { refusal }) };
    const silent = silence === undefined ? {} : { silence };
    if (!machine.isRunning) return { state: 'booting', ...said, ...silent };
    return { state: 'running', ...(notice !== undefined && { notice }), ...silent };
  }

  async #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (Number.isFinite(ms)) return this.#cloud.clock.sleep(ms, signal);
    const { promise, resolve } = Promise.withResolvers<void>();
    signal?.addEventListener('abort', () => resolve(), { once: true });
    return promise;
  }

  /** The call takes effect even when its reply is lost. */
  async #call<Result>({ signal }: CallOptions, act: () => Result): Promise<Result> {
    signal?.throwIfAborted();
    const { clock, conduct, random } = this.#cloud;
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
