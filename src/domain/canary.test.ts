import { expect, test } from 'vitest';
import { firstByteDistributions, lognormal, simulateCanary, type CanaryTraffic } from '../../test/support/canary-traffic.ts';
import { judgeCanary, memoryOf, summaryOf, type CanaryMemory } from './canary.ts';
import { firstByteLimitsMs, waitLimitsMs, type ReplicaOutcomes } from './outcomes.ts';

const steady = { requestsPerSecond: 20, share: 0.05, firstByte: lognormal(100, 1), errorShare: 0, seconds: 60 };
const waitsLong = firstByteDistributions['3 % wait 30 to 120 s'] ?? steady.firstByte;
const noWait = firstByteLimitsMs.map(() => 0);

/** All responses arrive within 1 ms. */
const outcomes = (responses: number, errors: number): ReplicaOutcomes => ({
  responses,
  errors,
  firstByteCounts: noWait.with(0, responses),
  waitCounts: [],
});

const judge = (old: ReplicaOutcomes, next: ReplicaOutcomes, memory?: CanaryMemory): ReturnType<typeof judgeCanary> =>
  judgeCanary({ old: { ...old, version: 1 }, next: { ...next, version: 2 } }, memory);

/** How many of the runs with successive seeds end with `worse`. */
const worseRuns = (traffic: CanaryTraffic, runs: number): number =>
  Array.from({ length: runs }, (_, seed) => simulateCanary(traffic, seed + 1).foundAt).filter((second) => second !== null).length;

test('equal versions are rolled back in at most 1 % of simulated runs', () => {
  const traffics = Object.values(firstByteDistributions).flatMap((firstByte, index) =>
    [false, true].flatMap((bursts) =>
      [0.05, 0.25, 0.5].map((share) => ({
        ...steady,
        firstByte,
        bursts,
        share,
        requestsPerSecond: [5, 20, 60][index % 3] ?? 20,
        errorShare: [0, 0.001, 0.02, 0.1][index % 4] ?? 0,
        seconds: 150,
      })),
    ),
  );
  const runs = 7;
  const worse = traffics.reduce((sum, traffic) => sum + worseRuns(traffic, runs), 0);
  expect(traffics.length * runs).toBeGreaterThan(200);
  expect(worse).toBeLessThanOrEqual(0.01 * traffics.length * runs);
});

test.each([
  ['10 % errors, old none', { ...steady, next: { errorShare: 0.1 } }, 0.95],
  ['10 % errors, old 0.1 %', { ...steady, errorShare: 0.001, next: { errorShare: 0.1 } }, 0.93],
  ['10 % errors, old 0.5 %', { ...steady, errorShare: 0.005, next: { errorShare: 0.1 } }, 0.75],
  ['10 % errors, old 0.5 %, at 25 %', { ...steady, share: 0.25, errorShare: 0.005, next: { errorShare: 0.1 } }, 0.99],
  ['3 times the first byte, sigma 0.3', { ...steady, firstByte: lognormal(100, 0.3), next: { firstByteFactor: 3 } }, 0.99],
  ['3 times the first byte, sigma 1', { ...steady, next: { firstByteFactor: 3 } }, 0.95],
  ['constant first byte times 3', { ...steady, firstByte: () => 50, next: { firstByteFactor: 3 } }, 0.99],
  ['all requests fail', { ...steady, next: { errorShare: 1 }, seconds: 8 }, 0.99],
  ['all requests hang', { ...steady, next: { hangShare: 1 } }, 0.99],
  ['all requests hang, as many as others', { ...steady, share: 0.5, next: { hangShare: 1 } }, 0.99],
  ['20 % hang', { ...steady, next: { hangShare: 0.2 } }, 0.9],
  ['20 % hang, at 25 %', { ...steady, share: 0.25, next: { hangShare: 0.2 } }, 0.99],
  ['20 % hang, 3 % wait long', { ...steady, firstByte: waitsLong, next: { hangShare: 0.2 } }, 0.5],
])('a bad version is found within 60 s at 20 requests/s: %s', (_, traffic, power) => {
  expect(worseRuns(traffic, 100)).toBeGreaterThanOrEqual(100 * power);
});

test.each([20, 60])('slow spells of single replicas rarely roll back a canary of one replica: %i requests/s', (requestsPerSecond) => {
  const spells = { replicas: 20, firstByteFactor: 3 };
  const traffic = { ...steady, requestsPerSecond, firstByte: lognormal(100, 0.3), spells, seconds: 300 };
  // 60 runs of 5 minutes have about 180 spells of the canary.
  expect(worseRuns(traffic, 60)).toBeLessThanOrEqual(1);
});

test('a version that turns bad after ten minutes is found', () => {
  const { foundAt } = simulateCanary({ ...steady, seconds: 720, next: { errorShare: 1, badFromSecond: 600 } }, 1);
  expect(foundAt).toBeGreaterThan(600);
  expect(foundAt).toBeLessThan(630);
});

test.each([
  ['10 % slower', { ...steady, next: { firstByteFactor: 1.1 } }],
  ['2.5 % errors instead of 2 %', { ...steady, errorShare: 0.02, next: { errorShare: 0.025 } }],
  ['0.3 % errors instead of none', { ...steady, next: { errorShare: 0.003 } }],
])('a difference that does not matter is no reason at high traffic: %s', (_, traffic) => {
  expect(worseRuns({ ...traffic, requestsPerSecond: 2000, share: 0.25, seconds: 60 }, 2)).toBe(0);
});

test('two failures of the first two requests suffice at a share of 5 %', () => {
  const first = judge(outcomes(19, 0), outcomes(1, 1));
  expect(first.verdict).toBe('undecided');
  const second = judge(outcomes(38, 0), outcomes(2, 2), first.memory);
  expect(second).toMatchObject({ verdict: 'worse', reason: '2 of 2 requests of version 2 failed, 0 of 38 of version 1.' });
});

test('an outage behind both versions is no evidence', () => {
  const first = judge(outcomes(190, 190), outcomes(10, 10));
  expect(judge(outcomes(380, 380), outcomes(20, 20), first.memory).verdict).toBe('undecided');
});

test('a version that hangs is described by how long its requests wait', () => {
  const { last } = simulateCanary({ ...steady, firstByte: () => 50, next: { hangShare: 1 } }, 1);
  expect(last.reason).toMatch(/^(\d+) of \1 requests of version 2 had no byte of a response after 4\.1 s, 0 of \d+ of version 1\.$/);
});

test('requests that hang at both versions are no evidence', () => {
  const waiting = (responses: number, waits: number): ReplicaOutcomes => ({ ...outcomes(responses, 0), waitCounts: [waits, waits] });
  const first = judge(waiting(0, 190), waiting(0, 10));
  expect(first.memory).toMatchObject({ windows: 1, evidence: judge(outcomes(19, 0), outcomes(1, 0)).memory.evidence });
});

test.each([0.05, 0.5])('requests that wait 30 to 120 s at both versions roll back no canary: share %s', (share) => {
  expect(worseRuns({ ...steady, firstByte: waitsLong, share, seconds: 180 }, 50)).toBe(0);
});

test('one silence of a single replica does not roll back a canary of one replica', () => {
  const [spell, hang] = [10, 40].map((seconds) => {
    let last = judge(outcomes(0, 0), outcomes(0, 0));
    for (let second = 1; second <= 60; second++) {
      const next = { ...outcomes(60 + second, 0), waitCounts: waitLimitsMs.map(() => Math.min(second, seconds)).fill(0, 4) };
      last = judge(outcomes(1000 + 19 * second, 0), next, last.memory);
      if (last.verdict === 'worse') break;
    }
    return last;
  });
  expect(spell?.verdict).toBe('undecided');
  expect(hang?.reason).toMatch(/^\d+ of \d+ requests of version 2 had no byte of a response after 4\.1 s, 0 of \d+ of version 1\.$/);
});

test('a slower version is described by its times', () => {
  const { last } = simulateCanary({ ...steady, firstByte: () => 50, next: { firstByteFactor: 3 } }, 1);
  expect(last.reason).toBe('The median of the time to first byte of version 2 is 140 ms, of version 1 49 ms.');
});

test('the reason names the figures while nothing is decided', () => {
  expect(judge(outcomes(10, 0), outcomes(0, 0)).reason).toBe('There are no responses of version 2 to compare yet.');
  expect(judge(outcomes(10, 1), outcomes(10, 1)).reason).toBe(
    'Version 2 is not worse so far: 1 of 10 requests of version 2 failed, 1 of 10 of version 1; median times to first byte: 0.92 ms and 0.92 ms.',
  );
});

test('the window stays open until both versions have answered', () => {
  const first = judge(outcomes(19, 0), outcomes(0, 0));
  const whole = judge(outcomes(38, 0), outcomes(1, 1), first.memory);
  expect(whole.memory).toEqual(judge(outcomes(38, 0), outcomes(1, 1)).memory);
});

test('counts that fall begin a new window and are no evidence', () => {
  const { memory } = judge(outcomes(190, 0), outcomes(10, 1));
  const fallen = judge(outcomes(20, 0), outcomes(12, 5), memory).memory;
  expect(fallen).toEqual({ ...memory, seen: { old: outcomes(20, 0), next: outcomes(12, 5) } });
});

test('the memory survives JSON, also with overwhelming evidence', () => {
  const { memory, verdict } = judge(outcomes(1_000_000, 0), outcomes(50_000, 50_000));
  expect(verdict).toBe('worse');
  expect(JSON.parse(JSON.stringify(memory))).toEqual(memory);
});

test('a stored summary is small, and the comparison goes on with it', () => {
  const busy = {
    ...steady,
    requestsPerSecond: 3000,
    share: 0.25,
    firstByte: firstByteDistributions['LLM, 0.2 to 30 s'] ?? lognormal(100, 1),
  };
  const { memory } = simulateCanary({ ...busy, seconds: 60 }, 1).last;
  const summary = summaryOf(memory);
  expect(JSON.stringify(summary).length).toBeLessThan(4096);
  const restored = memoryOf(JSON.parse(JSON.stringify(summary)));
  const next = judge(outcomes(20, 0), outcomes(1, 1), restored).memory;
  expect(next.windows).toBe(memory.windows + 1);
  for (const [index, one] of memory.evidence.entries()) expect(restored.evidence[index]).toBeCloseTo(one, 1);
});
