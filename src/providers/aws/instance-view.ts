import type { Clock } from '../../shared/clock.ts';
import { hasTags } from '../has-tags.ts';
import type { MachineId, MachineNotice } from '../provider.ts';
import type { Ec2, Instance } from './client.ts';
import type { InstanceRef } from './machine-id.ts';
import { noticeOf, statusOf, type InstanceStatus } from './machine-status.ts';
import { ownTags } from './tags.ts';

/** A machine as AWS shows it. */
export interface InstanceSight {
  readonly status: InstanceStatus;
  readonly notice: MachineNotice | undefined;
  readonly isSpot: boolean;
  readonly publicHost: string | undefined;
  readonly privateHost: string | undefined;
  /** The idempotency key it was made with. */
  readonly key: string | undefined;
}

/** A filter takes so many values. */
const idsAtOnce = 200;
/** Callers ask twice a second whether a machine is up; AWS counts calls, and machines take half a minute. */
const bootingRememberedMs = 1_000;
/** A machine that was just made, or removed, is shown otherwise for so long at most. */
const settlingMs = 60_000;

/** What AWS shows of machines, mended where it is behind what we know ourselves: what this process just made exists, what it removed is gone. */
export class InstanceView {
  readonly #clock: Clock;
  readonly #seen = new Map<MachineId, { readonly sight: InstanceSight; readonly at: number }>();
  readonly #made = new Map<MachineId, { readonly tags: Readonly<Record<string, string>>; readonly at: number }>();
  readonly #removed = new Map<MachineId, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** This process was given a machine. */
  wasMade(id: MachineId, tags: Readonly<Record<string, string>>): void {
    this.#removed.delete(id);
    this.#made.set(id, { tags, at: this.#clock.monotonic() });
  }

  /** This process had a machine removed. */
  wasRemoved(id: MachineId): void {
    this.#made.delete(id);
    this.#seen.delete(id);
    this.#removed.set(id, this.#clock.monotonic());
  }

  /** It is about to change: what was seen counts no more. */
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

  /** Machines with all of the tags that this process made and AWS may not show yet. */
  justMade(tags: Readonly<Record<string, string>>): readonly { readonly id: MachineId; readonly tags: Readonly<Record<string, string>> }[] {
    return [...this.#made]
      .filter(([id, made]) => this.isJustMade(id) && hasTags(made.tags, tags))
      .map(([id, made]) => ({ id, tags: made.tags }));
  }

  /** What was seen of a machine within the given time, ms; undefined when nothing was. */
  lastSight(id: MachineId, withinMs: number): InstanceSight | undefined {
    const seen = this.#seen.get(id);
    return seen !== undefined && this.#clock.monotonic() - seen.at < withinMs ? seen.sight : undefined;
  }

  /** Looks at machines of one region: one list of AWS, and another one when there are spot machines among them. */
  async look(
    ec2: Ec2,
    machines: ReadonlyMap<MachineId, InstanceRef>,
    isBooting: (id: MachineId) => boolean,
  ): Promise<ReadonlyMap<MachineId, InstanceSight>> {
    const now = this.#clock.monotonic();
    const wanted = [...machines].filter(([id]) => {
      const seen = this.#seen.get(id);
      return seen === undefined || now - seen.at >= bootingRememberedMs || !isBooting(id);
    });
    const instances = new Map<string, Instance>();
    for (let begin = 0; begin < wanted.length; begin += idsAtOnce) {
      const Values = wanted.slice(begin, begin + idsAtOnce).map(([, ref]) => ref.instanceId);
      for (const instance of await ec2.instances([{ Name: 'instance-id', Values }]))
        if (instance.InstanceId !== undefined) instances.set(instance.InstanceId, instance);
    }
    const notices = await noticesOf(ec2, [...instances.values()]);
    for (const [id, { instanceId }] of wanted) {
      const instance = instances.get(instanceId);
      this.#seen.set(id, { sight: this.#sightOf(id, instance, notices.get(instanceId)), at: now });
    }
    return new Map([...machines.keys()].map((id) => [id, this.#seen.get(id)?.sight ?? unseen]));
  }

  #sightOf(id: MachineId, instance: Instance | undefined, notice: MachineNotice | undefined): InstanceSight {
    const shown = instance === undefined ? undefined : statusOf(instance);
    // AWS says why a machine is gone, we only that it is.
    if (this.#removed.has(id)) return { ...unseen, status: shown?.state === 'gone' ? shown : { state: 'gone', reason: 'deleted' } };
    if (instance === undefined || shown === undefined) return this.isJustMade(id) ? { ...unseen, status: { state: 'booting' } } : unseen;
    return {
      status: shown,
      notice,
      isSpot: instance.InstanceLifecycle === 'spot',
      publicHost: filled(instance.PublicIpAddress),
      privateHost: filled(instance.PrivateIpAddress),
      key: instance.Tags?.find(({ Key }) => Key === ownTags.key)?.Value,
    };
  }
}

const unseen: InstanceSight = {
  status: { state: 'gone', reason: 'unknown' },
  notice: undefined,
  isSpot: false,
  publicHost: undefined,
  privateHost: undefined,
  key: undefined,
};

const filled = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

async function noticesOf(ec2: Ec2, instances: readonly Instance[]): Promise<ReadonlyMap<string, MachineNotice>> {
  const spot = instances
    .filter((one) => one.InstanceLifecycle === 'spot' && one.State?.Name === 'running')
    .flatMap((one) => one.InstanceId ?? []);
  const notices = new Map<string, MachineNotice>();
  for (let begin = 0; begin < spot.length; begin += idsAtOnce) {
    for (const request of await ec2.spotRequests([{ Name: 'instance-id', Values: spot.slice(begin, begin + idsAtOnce) }])) {
      const notice = noticeOf(request);
      if (notice !== undefined && request.InstanceId !== undefined) notices.set(request.InstanceId, notice);
    }
  }
  return notices;
}
