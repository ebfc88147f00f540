import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadBalancingPolicies } from '../../domain/task.ts';
import { seededRandom } from '../../shared/random.ts';
import type { Candidate } from './policy.ts';
import { createPolicy } from './registry.ts';

const candidates = (...loads: readonly number[]): Candidate[] =>
  loads.map((inFlight, index) => ({ id: index + 1, inFlight, weight: 1, lastChoice: 0 }));

const anyCandidates = fc
  .array(fc.record({ inFlight: fc.nat(50), weight: fc.double({ min: 0.01, max: 100, noNaN: true }) }), { minLength: 1, maxLength: 20 })
  .map((all) => all.map((one, index) => ({ ...one, id: index * 3, lastChoice: 0 })));

/** Pearson's statistic of counts that should all be equal. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe.each(loadBalancingPolicies)('%s', (name) => {
  test('always picks one of the candidates', () => {
    fc.assert(
      fc.property(anyCandidates, fc.integer(), (all, seed) => {
        const index = createPolicy(name).pick(all, seededRandom(seed));
        return Number.isInteger(index) && all[index] !== undefined;
      }),
    );
  });

  test('has the name it is registered under', () => {
    expect(createPolicy(name).name).toBe(name);
  });

  test('leaves no candidate without requests while all are equal', () => {
    const policy = createPolicy(name);
    const random = seededRandom(1);
    const counts = [0, 0, 0, 0, 0];
    for (let turn = 0; turn < 10_000; turn += 1) {
      const index = policy.pick(candidates(3, 3, 3, 3, 3), random);
      counts[index] = (counts[index] ?? 0) + 1;
    }
    // 18.47: four degrees of freedom, p = 0.001.
    expect(chiSquare(counts)).toBeLessThan(18.47);
  });
});

test('least_load never picks a candidate that has more than another', () => {
  fc.assert(
    fc.property(anyCandidates, fc.integer(), (all, seed) => {
      const picked = all[createPolicy('least_load').pick(all, seededRandom(seed))];
      return picked !== undefined && all.every(({ inFlight }) => picked.inFlight <= inFlight);
    }),
  );
});

test('least_load breaks ties evenly among the equals, wherever they stand', () => {
  const policy = createPolicy('least_load');
  const random = seededRandom(7);
  const counts = new Map<number, number>();
  for (let turn = 0; turn < 9_000; turn += 1) {
    const index = policy.pick(candidates(4, 1, 9, 1, 1), random);
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([1, 3, 4]);
  // 13.82: two degrees of freedom, p = 0.001.
  expect(chiSquare([...counts.values()])).toBeLessThan(13.82);
});

test('equals take turns, the one taken longest ago first', () => {
  const policy = createPolicy('least_load');
  const all = [3, 1, 2].map((lastChoice, index) => ({ id: index + 1, inFlight: 0, weight: 1, lastChoice }));
  const taken: number[] = [];
  for (let turn = 4; turn < 10; turn += 1) {
    const picked = all[policy.pick(all, seededRandom(turn))];
    if (picked === undefined) continue;
    picked.lastChoice = turn;
    taken.push(picked.id);
  }
  expect(taken).toEqual([2, 3, 1, 2, 3, 1]);
});

test('round_robin takes each in turn and is not put out by replicas that come and go', () => {
  const policy = createPolicy('round_robin');
  const take = (...ids: readonly number[]): number | undefined => {
    const all = ids.map((id) => ({ id, inFlight: 0, weight: 1, lastChoice: 0 }));
    return all[policy.pick(all, seededRandom(1))]?.id;
  };
  expect([take(1, 2, 3), take(1, 2, 3), take(1, 3), take(1, 3), take(1, 2, 3), take(4), take(1, 2, 4)]).toEqual([1, 2, 3, 1, 2, 4, 1]);
});

test('instance_aware_least_load fills replicas in proportion to their weights', () => {
  const policy = createPolicy('instance_aware_least_load');
  const all = [
    { id: 1, inFlight: 0, weight: 1, lastChoice: 0 },
    { id: 2, inFlight: 0, weight: 4, lastChoice: 0 },
  ];
  for (let turn = 0; turn < 50; turn += 1) {
    const picked = all[policy.pick(all, seededRandom(turn))];
    if (picked !== undefined) picked.inFlight += 1;
  }
  expect(all.map(({ inFlight }) => inFlight)).toEqual([10, 40]);
});
