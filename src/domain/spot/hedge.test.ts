import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstToEnd, hedgeMarkets, orderZones, type HedgeFacts, type HedgeReplica } from './hedge.ts';
import { recordAccepted, recordLoss, recordRefusal, type ZoneHistory } from './zone-history.ts';

const hourMs = 3_600_000;
const now = 100 * hourMs;

const regionOf = (zone: string): string => zone.slice(0, -1);
const spot = (zone: string, change: Partial<HedgeReplica> = {}): HedgeReplica => ({
  zone,
  region: regionOf(zone),
  isSpot: true,
  isReady: true,
  launchedAt: 0,
  ...change,
});
const onDemand: HedgeReplica = spot('', { isSpot: false });
const zoneOf = (zone: string, price = 1) => ({ zone, region: regionOf(zone), price });

const factsOf = (change: Partial<HedgeFacts> = {}): HedgeFacts => ({
  target: 4,
  coldStartMs: 183_000,
  onDemandPrice: 3,
  zones: ['a1', 'b1', 'c1'].map((zone) => zoneOf(zone)),
  replicas: [],
  histories: {},
  now,
  ...change,
});

/** A zone that took replicas and opened again, both long enough ago for it to be asked. */
const openedAgo = (hours: number): ZoneHistory => {
  const openedAt = now - hours * hourMs;
  return recordAccepted(recordLoss(undefined, openedAt - 2), openedAt);
};

test('a new service starts all replicas on both markets', () => {
  const { spot: launched, onDemand: filled } = hedgeMarkets(factsOf());
  expect(launched).toBeGreaterThanOrEqual(4);
  expect(filled).toBe(4);
});

test('on-demand replicas end when enough spot replicas are ready in steady zones', () => {
  const replicas = [spot('a1'), spot('a1'), spot('b1'), spot('b1'), spot('c1'), spot('c1'), ...[1, 2, 3, 4].map(() => onDemand)];
  expect(hedgeMarkets(factsOf({ replicas })).onDemand).toBe(0);
});

test('on-demand replicas stay while all spot replicas run in a zone that has just opened', () => {
  const replicas = [1, 2, 3, 4].map(() => spot('a1'));
  const kept = [0.05, 0.5, 2, 24].map((hours) => {
    const histories = { a1: openedAgo(hours) };
    return hedgeMarkets(factsOf({ zones: [zoneOf('a1')], replicas, histories })).onDemand;
  });
  expect(kept[0]).toBe(4);
  expect(kept.at(-1)).toBe(0);
  expect(kept).toEqual(kept.toSorted((a, b) => b - a));
});

test('all replicas go to the only zone that may be asked', () => {
  const closed = recordRefusal(undefined, now, false);
  const histories = { a1: closed, b1: closed };
  const replicas = [spot('c1'), spot('c1')];
  expect(hedgeMarkets(factsOf({ replicas, histories })).spot).toBeGreaterThanOrEqual(4);
  expect(orderZones(factsOf({ replicas, histories }))).toEqual(['c1']);
});

test('a spare is asked only in zones where it is worth its price', () => {
  // All replicas are in one zone, and a spare there would be lost with them.
  const closed = recordRefusal(undefined, now, false);
  const facts = factsOf({ replicas: [1, 2, 3, 4].map(() => spot('a1')), histories: { b1: closed, c1: closed } });
  expect(hedgeMarkets(facts).spot).toBe(4);
  expect(orderZones(facts)).toEqual([]);
});

test('the steadier zone is asked first at equal prices', () => {
  const histories = { a1: openedAgo(0.1), b1: openedAgo(10), c1: openedAgo(2) };
  expect(orderZones(factsOf({ target: 1, histories }))).toEqual(['b1', 'c1', 'a1']);
});

test('a much lower price outweighs a risk, a slightly lower one does not', () => {
  const histories = { a1: openedAgo(1), b1: openedAgo(10) };
  const order = (price: number) =>
    orderZones(factsOf({ zones: [zoneOf('a1', price), zoneOf('b1', 9)], onDemandPrice: 10, target: 1, histories }));
  expect(order(8.9)[0]).toBe('b1');
  expect(order(0.5)[0]).toBe('a1');
});

test('with spares, another region is preferred to a zone beside our replicas', () => {
  const names = ['a1', 'a2', 'b1'];
  const histories = Object.fromEntries(names.map((zone) => [zone, openedAgo(2)]));
  const facts = factsOf({ target: 2, zones: names.map((zone) => zoneOf(zone)), replicas: [spot('a1')], histories });
  expect(hedgeMarkets(facts).spot).toBeGreaterThan(2);
  const zones = orderZones(facts);
  expect(zones.indexOf('b1')).toBeLessThan(zones.indexOf('a2'));
});

const starting = (count: number) => Array.from({ length: count }, () => spot('b1', { isReady: false }));

test('a spot replica that starts is awaited, but not more of them than the target and its most spares', () => {
  const ready = [1, 2, 3, 4].map(() => spot('a1'));
  expect(hedgeMarkets(factsOf({ replicas: [...ready, ...starting(2)] })).spot).toBe(6);
  // The replicas of both versions of an update are among them: each launch must not allow another one.
  expect(hedgeMarkets(factsOf({ replicas: [...ready, ...starting(4)] })).spot).toBe(6);
  expect(hedgeMarkets(factsOf({ replicas: starting(4), target: 0 })).spot).toBe(0);
});

test('where spot is not cheaper, all replicas run on demand', () => {
  expect(hedgeMarkets(factsOf({ zones: [zoneOf('a1', 3)] }))).toEqual({ spot: 0, onDemand: 4 });
  expect(hedgeMarkets(factsOf({ zones: [] }))).toEqual({ spot: 0, onDemand: 4 });
});

test('a service without a target has no replicas', () => {
  expect(hedgeMarkets(factsOf({ target: 0 }))).toEqual({ spot: 0, onDemand: 0 });
});

test('the newest replica of the riskiest zone ends first', () => {
  const newest = spot('c1', { launchedAt: 9 });
  const replicas = [spot('a1'), spot('a1'), spot('b1'), spot('b1'), spot('c1'), newest, spot('c1')];
  expect(firstToEnd(factsOf({ replicas, histories: { c1: openedAgo(0.1) } }))).toBe(newest);
});

test('a replica in a zone that is no longer offered ends first', () => {
  const left = spot('x1');
  expect(firstToEnd(factsOf({ replicas: [spot('a1'), spot('a1'), left, spot('b1'), spot('c1')] }))).toBe(left);
});

test('no spot replica ends while as few are ready as the service needs', () => {
  const replicas = [...[1, 2, 3, 4].map(() => spot('a1')), spot('b1', { isReady: false })];
  expect(firstToEnd(factsOf({ replicas }))).toBeUndefined();
});

const randomFacts = fc.record({
  target: fc.nat(6),
  coldStartMs: fc.integer({ min: 1_000, max: 900_000 }),
  replicas: fc.array(
    fc
      .record({ zone: fc.constantFrom('a1', 'b1', 'c1', 'x1'), isSpot: fc.boolean(), isReady: fc.boolean() })
      .map(({ zone, ...change }) => spot(zone, change)),
    { maxLength: 10 },
  ),
  histories: fc.dictionary(fc.constantFrom('a1', 'b1', 'c1'), fc.double({ min: 0, max: 99, noNaN: true }).map(openedAgo)),
});

test('any decision keeps enough replicas launched and covers what is not ready', () => {
  fc.assert(
    fc.property(randomFacts, (change) => {
      const facts = factsOf(change);
      const markets = hedgeMarkets(facts);
      const ready = facts.replicas.filter(({ isSpot, isReady }) => isSpot && isReady).length;
      expect(markets.spot).toBeGreaterThanOrEqual(facts.target);
      expect(markets.onDemand).toBeGreaterThanOrEqual(facts.target - ready);
      expect(markets.onDemand).toBeLessThanOrEqual(facts.target);
      const isShort = facts.replicas.filter(({ isSpot }) => isSpot).length < facts.target;
      // Every open zone may be asked for a replica that the service needs.
      expect(orderZones(facts).length).toBeGreaterThanOrEqual(isShort ? 3 : 0);
    }),
  );
});
