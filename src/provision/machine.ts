import { forgetRefusal, nextAttemptAt, orderOffers, rememberRefusal, type Occupied, type Refusal } from '../domain/placement.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import type { MachineId, MachineSpec, Offer, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { collectOffers } from './offers.ts';
import type { ProvisionLog } from './provision-log.ts';

/** Which places refused, shared by all launches of a service so that they don't ask the same exhausted place. In memory: a restart asks anew. */
export class PlacementHistory {
  #refusals: readonly Refusal[] = [];
  readonly #choosing = new Set<Offer>();

  get refusals(): readonly Refusal[] {
    return this.#refusals;
  }

  /** Offers that were just chosen and are not recorded yet: launches at the same moment must see each other to spread. */
  get choosing(): readonly Offer[] {
    return [...this.#choosing];
  }

  /** Runs the recording of a choice. */
  async choose(offer: Offer, record: () => Promise<void>): Promise<void> {
    // A copy: the same offer can be chosen twice at once.
    const choice = { ...offer };
    this.#choosing.add(choice);
    try {
      await record();
    } finally {
      this.#choosing.delete(choice);
    }
  }

  refused(offer: Offer, kind: Refusal['kind'], now: number): void {
    this.#refusals = rememberRefusal(this.#refusals, offer, kind, now);
  }

  gave(offer: Offer): void {
    this.#refusals = forgetRefusal(this.#refusals, offer);
  }
}

/** What getting a machine needs. */
export interface MachineRequest {
  readonly alternatives: ResourceAlternatives;
  readonly providers: readonly Provider[];
  readonly history: PlacementHistory;
  /** Where the service's other replicas are now. */
  occupied(): Occupied;
  readonly spec: MachineSpec;
  readonly key: string;
  readonly clock: Clock;
  readonly log: ProvisionLog;
  /** Records the intent before the place is asked. */
  intend(offer: Offer): Promise<void>;
  /** Records that nothing was got there. */
  refused(offer: Offer, reason: string): Promise<void>;
  /** Nothing can be had at the moment; it is tried again at the given time. */
  waiting(until: number, reason: string): Promise<void>;
}

/** A machine that was accepted, and from where. */
export interface GivenMachine {
  readonly provider: Provider;
  readonly offer: Offer;
  readonly machineId: MachineId;
}

/** Failures that are neither capacity nor the user's: tried so often at the same place before it counts as refused. */
const transientAttempts = 3;
const transientPauseMs = 1_000;

/**
 * Gets a machine from the best place that gives one, going down the offers as places refuse and beginning again when the first of them may be
 * asked again. Ends only with a machine, a cancelled signal, or an error that no other place and no waiting would mend.
 */
export async function acquireMachine(request: MachineRequest, signal: AbortSignal): Promise<GivenMachine> {
  for (;;) {
    signal.throwIfAborted();
    const groups = await collectOffers(request.alternatives, request.providers, signal);
    let lastReason = '';
    for (const { offers } of groups) {
      // Ordered anew after each refusal: other launches of the service may have learned something meanwhile.
      for (;;) {
        const [offer] = orderOffers(
          offers,
          request.history.refusals,
          [...request.occupied(), ...request.history.choosing],
          request.clock.now(),
        );
        if (offer === undefined) break;
        const outcome = await tryOffer(request, offer, signal);
        if (typeof outcome !== 'string') return outcome;
        lastReason = outcome;
      }
    }
    const all = groups.flatMap((group) => group.offers);
    const until = nextAttemptAt(all, request.history.refusals) ?? request.clock.now() + transientPauseMs;
    await request.waiting(until, lastReason);
    await request.clock.sleep(until - request.clock.now(), signal);
  }
}

/** A machine, or the reason why this place gave none. */
async function tryOffer(request: MachineRequest, offer: Offer, signal: AbortSignal): Promise<GivenMachine | string> {
  const provider = request.providers.find((one) => one.name === offer.provider);
  if (provider === undefined) throw new SvcError('SVC_INTERNAL', `An offer names the place '${offer.provider}', which is not enabled.`);
  await request.history.choose(offer, () => request.intend(offer));
  request.log(`Asking ${placeName(offer)} for ${offer.instanceType} (${offer.hourlyUsd.toFixed(2)} $/h)`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const machineId = await provider.create(offer, request.spec, request.key, { signal });
      request.history.gave(offer);
      request.log(`${placeName(offer)} gave machine ${machineId}`);
      return { provider, offer, machineId };
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      const isCapacity = error instanceof SvcError && error.kind === 'capacity';
      if (!isCapacity && error instanceof SvcError && error.kind !== 'transient') throw error;
      if (isCapacity || attempt >= transientAttempts) {
        const kind = error instanceof SvcError && error.code === 'SVC_QUOTA' ? 'quota' : 'capacity';
        // A place that failed to answer may have accepted all the same: nothing must be left there when another one is asked.
        if (!isCapacity)
          for (const { id } of await provider.list({ 'svc-key': request.key }, { signal })) await provider.destroy(id, { signal });
        request.history.refused(offer, kind, request.clock.now());
        request.log(`${placeName(offer)} refused: ${reason}`);
        await request.refused(offer, reason);
        return `${placeName(offer)}: ${reason}`;
      }
      request.log(`${placeName(offer)} failed (${reason}); asking again`);
      await request.clock.sleep(transientPauseMs * attempt, signal);
    }
  }
}

/** `provider/region[/zone]` */
export function placeName(place: {
  readonly provider: string;
  readonly region: string;
  readonly zone?: string | null | undefined;
}): string {
  const zone = place.zone === undefined || place.zone === null ? '' : `/${place.zone}`;
  return `${place.provider}/${place.region}${zone}`;
}

/** How often a booting machine is looked at, ms; longer for places that take minutes would save calls, but local ones take none. */
const bootPollMs = 500;

/** Settles when the machine runs; throws SVC_MACHINE_LOST when it goes away instead. */
export async function waitUntilRunning(provider: Provider, machineId: MachineId, clock: Clock, signal: AbortSignal): Promise<void> {
  for (;;) {
    const status = (await provider.inspect([machineId], { signal })).get(machineId);
    if (status?.state === 'running') return;
    if (status === undefined || status.state === 'gone') {
      const reason = status?.reason ?? 'unknown';
      throw new SvcError('SVC_MACHINE_LOST', `Machine ${machineId} of ${provider.name} went away while booting (${reason}).`);
    }
    await clock.sleep(bootPollMs, signal);
    signal.throwIfAborted();
  }
}

const gonePollMs = 100;

/** Removes a machine and settles when the place confirms that it is gone; throws when it is not within `timeoutMs`. */
export async function destroyMachine(
  provider: Provider,
  machineId: MachineId,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  await provider.destroy(machineId, { signal });
  for (;;) {
    const status = (await provider.inspect([machineId], { signal })).get(machineId);
    if (status === undefined || status.state === 'gone') return;
    if (clock.monotonic() >= deadline) {
      throw new SvcError(
        'SVC_MACHINE_LOST',
        `Machine ${machineId} of ${provider.name} is still there ${Math.round(timeoutMs / 1_000)} s after it was removed.`,
      );
    }
    await clock.sleep(gonePollMs, signal);
    signal.throwIfAborted();
  }
}
