import { kindOf, type OccupiedLocation, type PlaceableOffer, type PlacementMemory, type Refusal } from '../domain/placement.ts';
import type { AwaitedChange, PendingAsk } from '../domain/placement/next-move.ts';
import {
  covers,
  endRefusals,
  forgetRefusals,
  lateRefusals,
  paceLaunches,
  refusalsAfterRestart,
  rememberLateRefusal,
  rememberRefusal,
  resumeLaunches,
  kindsWithoutVerdict,
  type Refused,
} from '../domain/placement/refusals.ts';
import { rememberStart } from '../domain/placement/rank.ts';
import { withOffers, withZones } from '../domain/spot/known-markets.ts';
import { activateZone, preemptZone } from '../domain/spot/placer.ts';
import type { Random } from '../shared/random.ts';

interface PlacementHistoryOptions {
  /** Saved by an earlier process. */
  readonly memory?: PlacementMemory | undefined;
  /** Called after each change and not awaited. A lost save only costs repeated asks. */
  readonly save?: (memory: PlacementMemory) => void;
  readonly random?: Random;
}

/** The part of an earlier process's memory that still holds. */
export function placementAfterRestart(memory: PlacementMemory | undefined, now: number): PlacementMemory | undefined {
  return memory && { ...memory, refusals: refusalsAfterRestart(memory.refusals, now) };
}

interface OpenAsk {
  readonly ask: PendingAsk;
  end(): void;
}

/** A search that waits: `launch` is its key, `group` is equal for searches that decide the same. */
interface WaitingSearch {
  readonly launch: string;
  readonly group: string;
  readonly for: AwaitedChange;
}

/** A kind that gave a machine within this time counts as available, ms. */
const givenLatelyMs = 300_000;

/** Memory that a service's launches share: no launch asks a provider that refused another one. */
export class PlacementHistory {
  #memory: PlacementMemory;
  readonly #save: (memory: PlacementMemory) => void;
  readonly #random: Random;
  readonly #open = new Map<PendingAsk, PlaceableOffer>();
  readonly #given = new Map<string, { offer: PlaceableOffer; machines: number; at: number }>();
  readonly #held = new Set<{ readonly launch: string; readonly hourlyUsd: number }>();
  readonly #waiters = new Map<() => void, WaitingSearch & { readonly since: number }>();
  #changes = 0;
  readonly #work = new Set<Promise<unknown>>();

  constructor({ memory, save = () => undefined, random = () => 0.5 }: PlacementHistoryOptions = {}) {
    this.#memory = { refusals: [], starts: [], ...memory };
    this.#save = save;
    this.#random = random;
  }

  get memory(): PlacementMemory {
    return this.#memory;
  }

  get pending(): readonly PendingAsk[] {
    return [...this.#open.keys()];
  }

  /** Locations of pending asks: concurrent launches must see each other to spread. */
  get asked(): readonly OccupiedLocation[] {
    return [...this.#open.values()];
  }

  /** Whether a provider may still return a surplus machine, or one is being terminated. */
  get isBusy(): boolean {
    return this.#open.size > 0 || this.#work.size > 0;
  }

  /** Tracks background work. If it fails, the sweep for machines without a record cleans up. */
  keepBusy(work: Promise<void>): void {
    const settled = work.catch(() => undefined).finally(() => this.#work.delete(settled));
    this.#work.add(settled);
  }

  /** Machines per kind since its last refusal, of kinds that gave one recently. `now` is monotonic ms. */
  given(now: number): ReadonlyMap<string, number> {
    return new Map([...this.#given].filter(([, { at }]) => now - at < givenLatelyMs).map(([kind, { machines }]) => [kind, machines]));
  }

  /** Records that a launch is about to ask. `at` is monotonic ms, `now` ms since the epoch. */
  asking(launch: string, offer: PlaceableOffer, at: number, now: number): OpenAsk {
    const ask = { launch, kind: kindOf(offer), at };
    this.#open.set(ask, offer);
    const refusals = paceLaunches(this.#memory.refusals, offer, launch, now);
    if (refusals !== this.#memory.refusals) this.#learn({ ...this.#memory, refusals });
    return {
      ask,
      end: () => {
        if (this.#open.delete(ask)) this.#notify(launch);
      },
    };
  }

  /**
   * Counts the price of an ask, US dollars per hour for all nodes, until the returned function is called. It must be
   * called when the ask was refused, or when the launch's record has the machine.
   */
  hold(launch: string, hourlyUsd: number): () => void {
    const hold = { launch, hourlyUsd };
    this.#held.add(hold);
    return () => {
      if (this.#held.delete(hold)) this.#notify();
    };
  }

  /** The highest price that a launch holds: it keeps one machine at most. 0: none. */
  heldBy(launch: string): number {
    return Math.max(0, ...[...this.#held].flatMap((hold) => (hold.launch === launch ? [hold.hourlyUsd] : [])));
  }

  /** Records what a search found in both markets. `search`: see `searchOf`. */
  found(search: string, offers: readonly PlaceableOffer[]): void {
    this.#learn(withOffers(this.#memory, search, offers));
  }

  /** `now` is ms since the epoch. */
  refused(offer: PlaceableOffer, refused: Refused, now: number): void {
    this.#distrust(offer, refused);
    const refusals = rememberRefusal(this.#memory.refusals, offer, refused, now, this.#random());
    this.#learn({ ...this.#afterRefusal(offer, refused), refusals });
  }

  /** A launch got no machine or lost it: other launches need not wait for it. `now` is ms since the epoch. */
  trialEnded(launch: string, offer: PlaceableOffer, now: number): void {
    this.#learn({ ...this.#memory, refusals: resumeLaunches(this.#memory.refusals, offer, launch, now) });
  }

  /** The provider accepted the ask sent at `askedAt` and refused at `now`, both ms since the epoch. */
  refusedLate(offer: PlaceableOffer, refused: Refused, askedAt: number, now: number): void {
    this.#distrust(offer, refused);
    const refusals = rememberLateRefusal(this.#memory.refusals, offer, refused, askedAt, now);
    this.#learn({ ...this.#afterRefusal(offer, refused), refusals });
  }

  /** Ends refusals whose cause at the provider has changed. `now` is ms since the epoch. */
  endRefusals(isMeant: (refusal: Refusal) => boolean, now: number): void {
    this.#learn({ ...this.#memory, refusals: endRefusals(this.#memory.refusals, isMeant, now) });
  }

  /** Forgets refusals, so that providers are asked again at once. `early`: keeps refusals after an acceptance. */
  forget(which: 'all' | 'early'): void {
    if (which === 'early') return this.#learn({ ...this.#memory, refusals: lateRefusals(this.#memory.refusals) });
    const activated = withZones(this.#memory, (zones) => zones.map((one) => ({ ...one, isPreempted: false })));
    return this.#learn({ ...activated, refusals: [] });
  }

  /** After a refusal only one launch may ask this kind at a time, even if it gave machines before. */
  #distrust(offer: PlaceableOffer, refused: Refused): void {
    if (refused.kind === 'throttled') return;
    for (const [kind, given] of this.#given) if (covers({ offer, ...refused }, given.offer)) this.#given.delete(kind);
  }

  /** `now` is monotonic ms. */
  gave(offer: PlaceableOffer, now: number): void {
    const kind = kindOf(offer);
    this.#given.set(kind, { offer, machines: (this.#given.get(kind)?.machines ?? 0) + 1, at: now });
    const refusals = forgetRefusals(this.#memory.refusals, offer);
    this.#learn({ ...withZones(this.#memory, (zones) => activateZone(zones, offer)), refusals });
  }

  /** `tookMs` counts from the ask. */
  started(offer: PlaceableOffer, tookMs: number): void {
    const { refusals, starts } = this.#memory;
    this.#learn({ ...this.#memory, refusals: forgetRefusals(refusals, offer, true), starts: rememberStart(starts, offer, tookMs) });
  }

  /** How often the memory changed or an ask ended. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * Settles when the memory changes or an ask ends, as far as that concerns the search, or when the signal aborts. Of
   * the searches of one group that wait for their turn, each change wakes one. `since`: the changes known to the search, if not all. It must call `passTurn` unless it waits
   * for its turn again: the others then need not find out one by one that they have to wait.
   */
  change(waiting: WaitingSearch, signal: AbortSignal, since = this.#changes): Promise<void> {
    if (since < this.#changes) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.#waiters.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiters.set(done, { ...waiting, since: this.#changes });
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }

  /** Wakes the next search of the group that waits for its turn, unless all have had it since the last change. */
  passTurn(group: string): void {
    for (const [wake, waiting] of this.#waiters)
      if (waiting.for === 'turn' && waiting.group === group && waiting.since < this.#changes) return wake();
  }

  #afterRefusal(offer: PlaceableOffer, { kind }: Refused): PlacementMemory {
    return offer.spot && !kindsWithoutVerdict.has(kind) ? withZones(this.#memory, (zones) => preemptZone(zones, offer)) : this.#memory;
  }

  #learn(memory: PlacementMemory): void {
    const { refusals, starts, spotZones, otherMarkets, search } = this.#memory;
    const isSame = memory.refusals === refusals && memory.starts === starts && memory.spotZones === spotZones;
    if (!isSame || memory.otherMarkets !== otherMarkets || memory.search !== search || memory.onDemandUsd !== this.#memory.onDemandUsd) {
      this.#memory = memory;
      this.#save(memory);
    }
    this.#notify();
  }

  /** `answered`: the launch whose ask ended, if one did. */
  #notify(answered?: string): void {
    this.#changes += 1;
    const woken = new Set<string>();
    for (const [wake, waiting] of this.#waiters) {
      if (waiting.for === 'own' ? waiting.launch !== answered : waiting.for === 'turn' && woken.has(waiting.group)) continue;
      if (waiting.for === 'turn') woken.add(waiting.group);
      wake();
    }
  }
}
