import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headOf } from '../../../test/support/http1-events.ts';
import { loadBalancingPolicies } from '../../domain/task.ts';
import { seededRandom } from '../../shared/random.ts';
import { type Candidate, type Policy, createPolicy } from './policies.ts';

const request = headOf('GET / HTTP/1.1\r\nHost: a\r\n\r\n');

/** The value of `sinceChoice` for a replica that was never chosen. */
const never = 2 ** 32;

const candidates = (...loads: readonly number[]): Candidate[] =>
  loads.map((inFlight, index) => ({ id: index + 1, inFlight, weight: 1, sinceChoice: never }));

const anyCandidates = fc
  .array(fc.record({ inFlight: fc.nat(50), weight: fc.double({ min: 0.01, max: 100, noNaN: true }) }), { minLength: 1, maxLength: 20 })
  .map((all) => all.map((one, index) => ({ ...one, id: index * 3, sinceChoice: never })));

/** Pearson's statistic of counts that should all be equal. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

interface Turned extends Candidate {
  sinceChoice: number;
}

/** Makes one choice, counts it as the threads do, and returns the id of the chosen replica. */
function takeTurn(policy: Policy, present: readonly Turned[], seed: number, all = present): number {
  const picked = present[policy.select(present, request, { random: seededRandom(seed) })];
  for (const candidate of all) candidate.sinceChoice += 1;
  if (picked === undefined) throw new Error('nothing was picked');
  picked.sinceChoice = 0;
  return picked.id;
}

describe.each(loadBalancingPolicies)('%s', (name) => {
  test('always picks one of the candidates', () => {
    fc.assert(
      fc.property(anyCandidates, fc.integer(), (all, seed) => {
        const index = createPolicy(name).select(all, request, { random: seededRandom(seed) });
        return Number.isInteger(index) && all[index] !== undefined;
      }),
    );
  });

  test('has the name it is registered under', () => {
    expect(createPolicy(name).name).toBe(name);
  });

  test('leaves no candidate without requests while all are equal', () => {
    const policy = createPolicy(name);
    const all = candidates(3, 3, 3, 3, 3).map((candidate) => ({ ...candidate }));
    const counts = [0, 0, 0, 0, 0];
    for (let turn = 0; turn < 10_000; turn += 1) {
      const index = takeTurn(policy, all, turn) - 1;
      counts[index] = (counts[index] ?? 0) + 1;
    }
    // 18.47: four degrees of freedom, p = 0.001.
    expect(chiSquare(counts)).toBeLessThan(18.47);
  });
});

test('least_load never picks a candidate with more requests than another', () => {
  fc.assert(
    fc.property(anyCandidates, fc.integer(), (all, seed) => {
      const picked = all[createPolicy('least_load').select(all, request, { random: seededRandom(seed) })];
      return picked !== undefined && all.every(({ inFlight }) => picked.inFlight <= inFlight);
    }),
  );
});

test('least_load breaks ties evenly at any position', () => {
  const policy = createPolicy('least_load');
  const random = seededRandom(7);
  const counts = new Map<number, number>();
  for (let turn = 0; turn < 9_000; turn += 1) {
    const index = policy.select(candidates(4, 1, 9, 1, 1), request, { random });
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual([1, 3, 4]);
  // 13.82: two degrees of freedom, p = 0.001.
  expect(chiSquare([...counts.values()])).toBeLessThan(13.82);
});

test('equal candidates take turns, the longest unchosen first', () => {
  const policy = createPolicy('least_load');
  const all = [1, 3, 2].map((sinceChoice, index) => ({ id: index + 1, inFlight: 0, weight: 1, sinceChoice }));
  const taken: number[] = [];
  for (let turn = 4; turn < 10; turn += 1) taken.push(takeTurn(policy, all, turn));
  expect(taken).toEqual([2, 3, 1, 2, 3, 1]);
});

test('round_robin takes replicas in turn while others are added and removed', () => {
  const policy = createPolicy('round_robin');
  const [a, b, c, d] = [4, 3, 2, 1].map((sinceChoice, index) => ({ id: index + 1, inFlight: 9 - index, weight: 1, sinceChoice }));
  if (a === undefined || b === undefined || c === undefined || d === undefined) return;
  const turns = [
    [a, b, c],
    [a, b, c],
    [a, c],
    [a, c],
    [a, b, c],
    [a, b, c, d],
    [a, b, c, d],
  ];
  expect(turns.map((present, turn) => takeTurn(policy, present, turn, [a, b, c, d]))).toEqual([1, 2, 3, 1, 2, 4, 3]);
});

test('instance_aware_least_load fills replicas in proportion to their weights', () => {
  const policy = createPolicy('instance_aware_least_load');
  const all = [
    { id: 1, inFlight: 0, weight: 1, sinceChoice: never },
    { id: 2, inFlight: 0, weight: 4, sinceChoice: never },
  ];
  for (let turn = 0; turn < 50; turn += 1) {
    const picked = all[policy.select(all, request, { random: seededRandom(turn) })];
    if (picked !== undefined) picked.inFlight += 1;
  }
  expect(all.map(({ inFlight }) => inFlight)).toEqual([10, 40]);
});
