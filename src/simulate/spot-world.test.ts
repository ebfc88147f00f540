import { expect, test } from 'vitest';
import { seededRandom } from '../shared/random.ts';
import { evenSpread, leastSpotCost, onDemandOnly, oneZone, roundRobin, spotHedge } from './spot-baselines.ts';
import { regionOf, type SpotPolicyOf, type SpotTrace } from './spot-fleet.ts';
import { runSpot, type SpotOptions } from './spot-world.ts';

/** Steps of 300 s, so 20 ticks of 15 s each. */
const traceOf = (...capacity: readonly (readonly number[])[]): SpotTrace => ({
  name: 'synthetic',
  gapSeconds: 300,
  zones: capacity.map((_, index) => `us-east-${index + 1}a`),
  capacity,
});

const options = (change: Partial<SpotOptions> = {}): SpotOptions => ({
  target: 2,
  onDemandPrice: 3,
  coldStartMs: 150_000,
  random: seededRandom(1),
  ...change,
});

test('on-demand replicas only cost 1 and are always enough after the first cold start', () => {
  const result = runSpot(traceOf([0, 0]), onDemandOnly, options());
  expect(result).toMatchObject({ cost: 1, spot: 0, onDemand: 1, available: 1, missing: 0, failed: 0 });
});

test('spot in a zone with room costs the spot price', () => {
  const result = runSpot(traceOf([4, 4]), oneZone(0), options());
  expect(result).toMatchObject({ spot: 1, onDemand: 0, available: 1, failed: 0, lostPerDay: 0 });
  expect(result.cost).toBeCloseTo(1 / 3);
});

test('a zone that closes takes all replicas; scores count the time and the requests', () => {
  // 40 ticks, of which the first 10 are a cold start: 10 of the 30 scored ticks have both replicas.
  const result = runSpot(traceOf([2, 0]), oneZone(0), options());
  expect(result.spot).toBeCloseTo(0.5);
  expect(result.available).toBeCloseTo(1 / 3);
  expect(result.missing).toBeCloseTo(2 / 3);
  // All of 2/3 of the time, and two replicas at 80 % load with requests of 10 s: 1.6 of 1.6 × 450 s / 10 s.
  expect(result.failed).toBeCloseTo(2 / 3 + 1 / 45);
  expect(result.lostPerDay).toBeCloseTo(2 * 144);
});

test('a zone that shrinks takes only the replicas for which it has no room', () => {
  const result = runSpot(traceOf([2, 1]), oneZone(0), options());
  expect(result.available).toBeCloseTo(1 / 3);
  expect(result.missing).toBeCloseTo(1 / 3);
  // One replica serves 1 of 1.6, and one of two replicas is lost with 0.8 of the work.
  expect(result.failed).toBeCloseTo((2 / 3) * (0.6 / 1.6) + 0.8 / (1.6 * 45));
});

test('a lost replica is replaced in another zone after one cold start', () => {
  const result = runSpot(traceOf([2, 0], [2, 2]), roundRobin(1), options());
  // Round robin has one replica per zone; the lost one is ready again 10 ticks later.
  expect(result.available).toBeCloseTo(20 / 30);
  expect(result.changesPerHour).toBeCloseTo(4 * 6);
});

test('an even spread asks the full zone again and again', () => {
  const result = runSpot(traceOf([0, 0], [2, 2]), evenSpread([0, 1]), options());
  expect(result.available).toBe(0);
  expect(result.refusedPerDay).toBeCloseTo(24 * 60 * 2);
});

test.each(['paper', 'artifact'] as const)('SpotHedge with the %s rule covers missing spot replicas on demand', (rule) => {
  const result = runSpot(traceOf([0, 0], [0, 0], [0, 0]), spotHedge(1, rule, 1), options());
  expect(result).toMatchObject({ onDemand: 1, spot: 0, available: 1 });
});

test('SpotHedge by its paper does not stack replicas in the only open zone, its artifact does', () => {
  const trace = traceOf([0, 0, 0, 0], [0, 0, 0, 0], [9, 9, 9, 9]);
  const share = (rule: 'paper' | 'artifact'): number => runSpot(trace, spotHedge(1, rule, 1), options({ target: 4 })).spot;
  expect(share('artifact')).toBeGreaterThan(1.1);
  expect(share('paper')).toBeLessThan(share('artifact'));
});

test('the same seed gives the same result, another seed may not', () => {
  const random = seededRandom(7);
  const capacity = Array.from({ length: 3 }, () => Array.from({ length: 100 }, () => Math.floor(random() * 4)));
  const run = (seed: number) => runSpot(traceOf(...capacity), spotHedge(1, 'paper', seed), options({ random: seededRandom(seed) }));
  expect(run(1)).toEqual(run(1));
  expect(run(1)).not.toEqual(run(2));
});

test('the lower bound uses spot wherever there is room', () => {
  // Half of the time one of two replicas must run on demand.
  expect(leastSpotCost(traceOf([1, 0], [1, 1]), { target: 2, onDemandPrice: 3 })).toBeCloseTo(0.25 + 0.75 / 3);
});

const launchAndEnd: SpotPolicyOf = () => ({
  step: (world) => {
    expect(world.launchSpot(0)).toBe(true);
    expect(world.launchSpot(0)).toBe(false);
    for (const replica of world.spot) world.endSpot(replica);
    expect(world.inZone(0)).toBe(0);
  },
});

test('ending a replica frees its room', () => {
  expect(runSpot(traceOf([1]), launchAndEnd, options()).spot).toBe(0);
});

test.each([
  ['us-east-1a_v100_1', 'us-east-1'],
  ['us-central1-b_a100_40gb_8', 'us-central1'],
  ['us-west-2c', 'us-west-2'],
])('the zone %s is in the region %s', (zone, region) => {
  expect(regionOf(zone)).toBe(region);
});
