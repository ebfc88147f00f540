import type { RefusalKind, RefusalScope } from '../../src/domain/placement.ts';
import { covers } from '../../src/domain/placement/refusals.ts';
import { ProviderRefusal } from '../../src/providers/provider-refusal.ts';
import type { MachineId, Offer, Provider } from '../../src/providers/provider.ts';
import { obtainMachine } from '../../src/provision/acquire-machine.ts';
import { PlacementHistory } from '../../src/provision/placement-history.ts';
import { seededRandom, type Random } from '../../src/shared/random.ts';
import { aMachineSpec, anOffer, someResources } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { statesOf } from './providers.ts';
import { aStubProvider, idOf } from './stub-provider.ts';

/** A market of machines, generated from a seed. Times are ms. */
export interface Market {
  readonly seed: number;
  readonly replicas: number;
  /** Response times of providers, from and to. */
  readonly answerMs: readonly [number, number];
  /** Number of offers. */
  readonly kinds: number;
  /** Share of offers that refuse, from 0 to 1. */
  readonly refusing: number;
  /** Capacity of offers that do not refuse, from and to. */
  readonly room: readonly [number, number];
}

/** From running to ready: files, setup, and loading a model. */
const programMs = 240_000;
/** From accepted to running. */
const bootMs: readonly [number, number] = [40_000, 90_000];

/**
 * The result of a search, compared with an oracle that knows the market. Times are ms from the request to the last
 * ready replica.
 */
export interface SearchResult {
  readonly tookMs: number;
  readonly oracleMs: number;
  readonly asks: number;
  /** Machines that were created after the search no longer needed them. */
  readonly surplus: number;
  /** Cost of the machines, relative to the oracle's cost. */
  readonly priceRatio: number;
  /** Machines without an owner that were not terminated, and second machines of a replica. */
  readonly leaked: number;
}

interface KindOfMachine {
  readonly offer: Offer;
  readonly answerMs: number;
  readonly bootMs: number;
  readonly refusal: { readonly kind: RefusalKind; readonly scope: RefusalScope } | undefined;
  room: number;
}

/** Refusals as clouds send them: mostly of capacity. */
const refusals: readonly (readonly [RefusalKind, RefusalScope])[] = [
  ['capacity', 'zone'],
  ['capacity', 'zone'],
  ['capacity', 'zone'],
  ['capacity', 'region'],
  ['quota', 'region'],
  ['price', 'zone'],
  ['unsupported', 'zone'],
];

/** A cloud with these offers, and the record of its machines. */
class SimulatedCloud {
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
    this.provider = aStubProvider({
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
    if (kind.refusal !== undefined) throw new ProviderRefusal(kind.refusal.kind, kind.refusal.scope, 'refused.');
    if (kind.room === 0) throw new ProviderRefusal('capacity', 'zone', 'no more.');
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

/** Runs the searches of all replicas of a service at once. */
export async function simulateSearch(market: Market): Promise<SearchResult> {
  const random = seededRandom(market.seed);
  const kinds = makeKinds(market, random);
  const clock = new FakeClock();
  const oracleMs = oracle(kinds, market.replicas);
  const oracleUsd = cheapest(kinds, market.replicas);
  const cloud = new SimulatedCloud(kinds, clock);
  const history = new PlacementHistory({ random });
  const stop = new AbortController();
  const startedAt = clock.monotonic();
  const given: MachineId[] = [];
  let lastAt = startedAt;
  const request = {
    alternatives: { order: 'any', choices: [someResources()] },
    providers: () => Promise.resolve(statesOf(cloud.provider)),
    history,
    occupied: () => [],
    spec: () => aMachineSpec(),
    clock,
    step: () => Promise.resolve(),
    background: stop.signal,
  } as const;
  const launch = async (replica: number): Promise<void> => {
    const { machineId } = await obtainMachine({ ...request, key: `replica-${replica}` }, undefined, stop.signal);
    given.push(machineId);
    lastAt = clock.monotonic();
  };
  for (let replica = 1; replica <= market.replicas; replica += 1) void launch(replica);
  await clock.advanceUntil(() => given.length === market.replicas && !history.isBusy, 7_200_000, 1_000);
  stop.abort();
  const paidUsd = given.reduce((sum, id) => sum + (cloud.living.get(id)?.kind.offer.hourlyUsd ?? 0), 0);
  return {
    tookMs: lastAt - startedAt + programMs,
    oracleMs: oracleMs + programMs,
    asks: cloud.asks,
    surplus: cloud.surplus,
    priceRatio: paidUsd / oracleUsd,
    leaked: cloud.living.size - new Set(given).size,
  };
}

function makeKinds(market: Market, random: Random): readonly KindOfMachine[] {
  const between = ([from, to]: readonly [number, number]): number => from + random() * (to - from);
  const all = Array.from({ length: market.kinds }, (_, index): KindOfMachine => {
    const region = `r${Math.floor(index / 6)}`;
    // Zones of a region have equal prices, as in most clouds.
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
  // A refusal applies to its whole scope. Add refusals until the configured share of offers refuses.
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
  // Ensure capacity for all replicas.
  const missing = market.replicas - good().reduce((sum, { room }) => sum + room, 0);
  const more = Math.ceil(Math.max(0, missing) / Math.max(1, good().length));
  return kinds.map((kind) => ({ ...kind, room: kind.room + more }));
}

/** The available machines, cheapest first, one for each replica. */
function rooms(kinds: readonly KindOfMachine[], replicas: number): readonly KindOfMachine[] {
  return kinds
    .filter(({ refusal }) => refusal === undefined)
    .toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)
    .flatMap((kind) => Array.from({ length: kind.room }, () => kind))
    .slice(0, replicas);
}

/** The oracle asks for each replica's machine at once, at the cheapest offer with capacity. */
function oracle(kinds: readonly KindOfMachine[], replicas: number): number {
  // A search polls a machine twice a second.
  return Math.max(...rooms(kinds, replicas).map((kind) => kind.answerMs + kind.bootMs));
}

function cheapest(kinds: readonly KindOfMachine[], replicas: number): number {
  return rooms(kinds, replicas).reduce((sum, { offer }) => sum + offer.hourlyUsd, 0);
}
