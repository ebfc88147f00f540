import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../shared/random.ts';
import { roundRobin, spotHedge } from './spot-baselines.ts';
import { hedge } from './spot-hedge.ts';
import type { SpotPolicyOf, SpotTrace } from './spot-fleet.ts';
import { runSpot, type SpotOptions, type SpotResult } from './spot-world.ts';

const coldStartMs = 180_000;
const optionsOf = (target: number, seed = 1): SpotOptions => ({ target, onDemandPrice: 3, coldStartMs, random: seededRandom(seed) });
const traceOf = (capacity: readonly (readonly number[])[]): SpotTrace => ({
  name: 'synthetic',
  gapSeconds: 300,
  zones: capacity.map((_, index) => `region-${index >> 1}${'ab'[index % 2] ?? ''}`),
  capacity,
});

/** Zones that stay open or closed for the longer, the longer they already are, as recorded ones do. */
function randomTrace(seed: number, zones: number, steps: number): SpotTrace {
  const random = seededRandom(seed);
  return traceOf(
    Array.from({ length: zones }, () => {
      const capacity: number[] = [];
      let isOpen = random() < 0.6;
      while (capacity.length < steps) {
        const length = Math.ceil(3 / Math.max(0.01, random()));
        for (let step = 0; step < length && capacity.length < steps; step += 1) capacity.push(isOpen ? 4 : 0);
        isOpen = !isOpen;
      }
      return capacity;
    }),
  );
}

/** Time from `fromMs` until `target` spot replicas are ready. */
function readyAfter(trace: SpotTrace, target: number, fromMs: number): number {
  let readyAt = Infinity;
  const watched: SpotPolicyOf = (options, zones) => {
    const policy = hedge(options, zones);
    return {
      ...policy,
      step: (world) => {
        policy.step(world);
        const ready = world.spot.filter((replica) => replica.readyAt <= world.now).length;
        if (world.now >= fromMs && ready >= target) readyAt = Math.min(readyAt, world.now);
      },
    };
  };
  runSpot(trace, watched, optionsOf(target));
  return readyAt - fromMs;
}

test('with one open zone, all replicas run there within two decisions and a cold start', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 2, max: 9 }),
      fc.nat(8),
      fc.nat(30),
      fc.nat(20),
      (target, zones, open, busy, closed) => {
        // First all zones are open, then none is, then one.
        const capacity = Array.from({ length: zones }, (_, zone) => [
          ...Array.from({ length: busy }, () => 3),
          ...Array.from({ length: closed }, () => 0),
          ...Array.from({ length: 3 }, () => (zone === open % zones ? target + 3 : 0)),
        ]);
        expect(readyAfter(traceOf(capacity), target, (busy + closed) * 300_000)).toBeLessThanOrEqual(2 * 30_000 + coldStartMs);
      },
    ),
    { numRuns: 25, seed: 1 },
  );
});

test('without any room the service runs on demand', () => {
  expect(runSpot(traceOf([[0, 0, 0, 0]]), hedge, optionsOf(4))).toMatchObject({ spot: 0, onDemand: 1, available: 1, failed: 0 });
});

test('with room everywhere the service runs on spot and changes nothing', () => {
  const capacity = [1, 2, 3].map(() => Array.from({ length: 288 }, () => 9));
  const result = runSpot(traceOf(capacity), hedge, optionsOf(4));
  expect(result.available).toBe(1);
  expect(result.cost).toBeLessThan(0.48);
  expect(result.changesPerHour).toBeLessThan(1);
});

const meanOf = (policyOf: SpotPolicyOf): Pick<SpotResult, 'cost' | 'available' | 'failed'> => {
  const results = [1, 2, 3].map((seed) => runSpot(randomTrace(seed, 4, 288 * 3), policyOf, optionsOf(4, seed)));
  const mean = (score: 'cost' | 'available' | 'failed'): number => results.reduce((sum, result) => sum + result[score], 0) / 3;
  return { cost: mean('cost'), available: mean('available'), failed: mean('failed') };
};

test('on random capacity the hedge costs less than SpotHedge and fails fewer requests than spot alone', () => {
  const [ours, published, alone] = [meanOf(hedge), meanOf(spotHedge(1, 'paper', 1)), meanOf(roundRobin(1))];
  expect(ours.cost).toBeLessThan(0.97 * published.cost);
  expect(ours.available).toBeGreaterThan(published.available - 0.002);
  expect(ours.failed).toBeLessThan(0.3 * alone.failed);
});

test('the same seed gives the same result', () => {
  const [first, second] = [1, 2].map(() => runSpot(randomTrace(3, 4, 288), hedge, optionsOf(4, 5)));
  expect(first).toEqual(second);
});
