import type { RefusalKind, RefusalScope } from '../../src/domain/placement.ts';
import { covers } from '../../src/domain/placement/refusals.ts';
import { PlaceRefusal } from '../../src/providers/place-refusal.ts';
import type { MachineId, Offer, Provider } from '../../src/providers/provider.ts';
import { obtainMachine } from '../../src/provision/acquire-machine.ts';
import { PlacementHistory } from '../../src/provision/placement-history.ts';
import { seededRandom, type Random } from '../../src/shared/random.ts';
import { aMachineSpec, anOffer, someResources } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { statesOf } from './places.ts';
import { aStubPlace, idOf } from './stub-place.ts';

/** A market of machines, made from a seed. Times are ms. */
export interface Market {
  readonly seed: number;
  readonly replicas: number;
  /** How long places take to answer, from and to. */
  readonly answerMs: readonly [number, number];
  /** Kinds of machines at places. */
  readonly kinds: number;
  /** How many of them refuse, from 0 to 1. */
  readonly refusing: number;
  /** Machines that a place which gives any has, from and to. */
  readonly room: readonly [number, number];
}

/** From running to ready: files, setup, and loading a model. */
const programMs = 240_000;
/** From accepted to running. */
const bootMs: readonly [number, number] = [40_000, 90_000];

/** How a search went, beside what one who knows the market would do. Times are ms from the wish to the last replica that is ready. */
export interface SearchResult {
  readonly tookMs: number;
  readonly oracleMs: number;
  readonly asks: number;
  /** Machines that were given although they were no longer wanted. */
  readonly surplus: number;
  /** What the machines cost, as a multiple of what the oracle pays. */
  readonly priceRatio: number;
  /** Machines that nobody has and nobody gave back, and replicas with two. */
  readonly leaked: number;
}

interface KindOfMachine {
  readonly offer: Offer;
  readonly answerMs: number;
  readonly bootMs: number;
  readonly refusal: { readonly kind: RefusalKind; readonly scope: RefusalScope } | undefined;
  room: number;
}

/** Refusals as clouds give them: mostly for want of machines. */
const refusals: readonly (readonly [RefusalKind, RefusalScope])[] = [
  ['capacity', 'zone'],
  ['capacity', 'zone'],
  ['capacity', 'zone'],
  ['capacity', 'region'],
  ['quota', 'region'],
  ['price', 'zone'],
  ['unsupported', 'zone'],
];

/** A place that has these kinds of machines, and what became of them. */
class MarketPlace {
  readonly living = new Map<MachineId, { readonly kind: KindOfMachine; readonly runsAt: number }>();
  asks = 0;
  surplus = 0;
  readonly provider: Provider;
  readonly #kinds: readonly KindOfMachine[];
  readonly #clock: FakeClock;
  #machines = 0;

  constructor(kinds: readonly KindOfMachine[], clock: FakeClock) {
    this.#kinds = kinds;
    this.#clock = clock;
    this.provider = aStubPlace({
      name: 'cloud',
      offers: () => Promise.resolve({ offers: kinds.map(({ offer }) => offer), whyNone: undefined }),
      create: (offer, _spec, _key, { signal }) => this.#create(offer, signal),
      inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, { state: this.#isRunning(id) ? 'running' : 'booting' } as const]))),
      destroy: (id) => Promise.resolve(this.#destroy(id)),
    });
  }

  async #create(offer: Offer, signal: AbortSignal | undefined): Promise<MachineId> {
    this.asks += 1;
    const kind = this.#kinds.find((one) => one.offer === offer);
    if (kind === undefined) throw new Error('an offer that is none');
    await this.#clock.sleep(kind.answerMs, signal);
    if (kind.refusal !== undefined) throw new PlaceRefusal(kind.refusal.kind, kind.refusal.scope, 'refused.');
    if (kind.room === 0) throw new PlaceRefusal('capacity', 'zone', 'no more.');
    kind.room -= 1;
    this.#machines += 1;
    const id = idOf(`m${this.#machines}`);
    this.living.set(id, { kind, runsAt: this.#clock.monotonic() + kind.bootMs });
    return id;
  }

  #isRunning(id: MachineId): boolean {
    return (this.living.get(id)?.runsAt ?? 0) <= this.#clock.monotonic();
  }

  #destroy(id: MachineId): void {
    const machine = this.living.get(id);
    if (machine !== undefined) machine.kind.room += 1;
    this.living.delete(id);
    this.surplus += 1;
  }
}

/** Lets all replicas of a service search at once. */
export async function simulateSearch(market: Market): Promise<SearchResult> {
  const random = seededRandom(market.seed);
  const kinds = makeKinds(market, random);
  const clock = new FakeClock();
  const oracleMs = oracle(kinds, market.replicas);
  const oracleUsd = cheapest(kinds, market.replicas);
  const place = new MarketPlace(kinds, clock);
  const history = new PlacementHistory({ random });
  const stop = new AbortController();
  const startedAt = clock.monotonic();
  const given: MachineId[] = [];
  let lastAt = startedAt;
  const wish = {
    alternatives: { order: 'any', choices: [someResources()] },
    places: () => Promise.resolve(statesOf(place.provider)),
    history,
    occupied: () => [],
    spec: () => aMachineSpec(),
    clock,
    step: () => Promise.resolve(),
    background: stop.signal,
  } as const;
  const launch = async (replica: number): Promise<void> => {
    const { machineId } = await obtainMachine({ ...wish, key: `replica-${replica}` }, undefined, stop.signal);
    given.push(machineId);
    lastAt = clock.monotonic();
  };
  for (let replica = 1; replica <= market.replicas; replica += 1) void launch(replica);
  await clock.advanceUntil(() => given.length === market.replicas && !history.isBusy, 7_200_000, 1_000);
  stop.abort();
  const paidUsd = given.reduce((sum, id) => sum + (place.living.get(id)?.kind.offer.hourlyUsd ?? 0), 0);
  return {
    tookMs: lastAt - startedAt + programMs,
    oracleMs: oracleMs + programMs,
    asks: place.asks,
    surplus: place.surplus,
    priceRatio: paidUsd / oracleUsd,
    leaked: place.living.size - new Set(given).size,
  };
}

function makeKinds(market: Market, random: Random): readonly KindOfMachine[] {
  const between = ([from, to]: readonly [number, number]): number => from + random() * (to - from);
  const all = Array.from({ length: market.kinds }, (_, index): KindOfMachine => {
    const region = `r${Math.floor(index / 6)}`;
    // Zones of a region cost the same, as in most clouds.
    const hourlyUsd = 1 + Math.floor(index / 3) * 0.05;
    return {
      offer: anOffer({
        provider: 'cloud',
        region,
        zone: `${region}-${index % 3}`,
        instanceType: `t${Math.floor(index / 3) % 2}`,
        hourlyUsd,
      }),
      answerMs: between(market.answerMs),
      bootMs: between(bootMs),
      refusal: undefined,
      room: Math.floor(between([market.room[0], market.room[1] + 1])),
    };
  });
  // A refusal refuses everything that it is about; there are more of them until as many kinds refuse as are to.
  let kinds: readonly KindOfMachine[] = all;
  const good = (): readonly KindOfMachine[] => kinds.filter(({ refusal }) => refusal === undefined);
  while (good().length > market.kinds * (1 - market.refusing)) {
    const [kind, scope] = refusals[Math.floor(random() * refusals.length)] ?? ['capacity', 'zone'];
    const refused = good()[Math.floor(random() * good().length)];
    if (refused === undefined) break;
    const { offer } = refused;
    kinds = kinds.map((one) =>
      one.refusal === undefined && covers({ offer, kind, scope }, one.offer) ? { ...one, refusal: { kind, scope } } : one,
    );
  }
  // There is room for all in the end.
  const missing = market.replicas - good().reduce((sum, { room }) => sum + room, 0);
  const more = Math.ceil(Math.max(0, missing) / Math.max(1, good().length));
  return kinds.map((kind) => ({ ...kind, room: kind.room + more }));
}

/** The rooms there are, cheapest first, as many as are wanted. */
function rooms(kinds: readonly KindOfMachine[], replicas: number): readonly KindOfMachine[] {
  return kinds
    .filter(({ refusal }) => refusal === undefined)
    .toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)
    .flatMap((kind) => Array.from({ length: kind.room }, () => kind))
    .slice(0, replicas);
}

/** One who knows asks each replica's place at once, the cheapest with room. */
function oracle(kinds: readonly KindOfMachine[], replicas: number): number {
  // A machine is looked at twice a second.
  return Math.max(...rooms(kinds, replicas).map((kind) => kind.answerMs + kind.bootMs));
}

function cheapest(kinds: readonly KindOfMachine[], replicas: number): number {
  return rooms(kinds, replicas).reduce((sum, { offer }) => sum + offer.hourlyUsd, 0);
}
