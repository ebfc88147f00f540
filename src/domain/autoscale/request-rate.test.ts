import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ReplicaPolicy } from '../task.ts';
import { decideTarget as decide, wantedReplicas as wantedFor } from './decide.ts';
import { initialAutoscaler, nextDecisionMs, type AutoscalerMemory } from './hysteresis.ts';
import type { ServiceLoad } from './load.ts';
import { addArrivals, requestsInWindow, type RequestWindow } from './request-window.ts';

const aPolicy = (changes: Partial<ReplicaPolicy> = {}): ReplicaPolicy => ({
  minReplicas: 1,
  maxReplicas: 10,
  numOverprovision: 0,
  targetQpsPerReplica: 2,
  upscaleDelaySeconds: 300,
  downscaleDelaySeconds: 1_200,
  dynamicOndemandFallback: false,
  baseOndemandFallbackReplicas: 0,
  spotPlacer: undefined,
  ...changes,
});

const requestsOnly = (requests: number): ServiceLoad => ({ requestsInWindow: requests, busy: 0, fleet: { living: [], toCome: 1 } });
const wantedReplicas = (policy: ReplicaPolicy, requests: number): number => wantedFor(policy, requestsOnly(requests));
const decideTarget = (memory: AutoscalerMemory, policy: ReplicaPolicy, requests: number): AutoscalerMemory =>
  decide(memory, policy, requestsOnly(requests));

/** Feeds the same count of requests to several decisions in a row. */
const decideOften = (memory: AutoscalerMemory, policy: ReplicaPolicy, requests: number, times: number): AutoscalerMemory =>
  Array.from({ length: times }).reduce<AutoscalerMemory>((last) => decideTarget(last, policy, requests), memory);

test.each([
  ['no request', 0, 1],
  ['as much as one replica takes', 120, 1],
  ['one request more', 121, 2],
  ['a lot', 600, 5],
  ['more than the largest number takes', 100_000, 10],
])('%s in a minute wants %d -> %d replicas', (_name, requests, wanted) => {
  expect(wantedReplicas(aPolicy(), requests)).toBe(wanted);
});

test('a fixed service always wants its number', () => {
  expect(wantedReplicas(aPolicy({ minReplicas: 3, maxReplicas: 3, targetQpsPerReplica: undefined }), 100_000)).toBe(3);
});

test('scales up after 15 decisions in a row at the default delay of 300 s', () => {
  const policy = aPolicy();
  const almost = decideOften(initialAutoscaler(policy), policy, 600, 14);
  expect(almost).toEqual({ target: 1, upCount: 14, downCount: 0 });
  expect(decideTarget(almost, policy, 600)).toEqual({ target: 5, upCount: 0, downCount: 0 });
});

test('scales down after 60 decisions in a row at the default delay of 1200 s', () => {
  const policy = aPolicy();
  const almost = decideOften({ target: 5, upCount: 0, downCount: 0 }, policy, 0, 59);
  expect(almost.target).toBe(5);
  expect(decideTarget(almost, policy, 0).target).toBe(1);
});

test('one agreeing decision forgets what was counted', () => {
  const policy = aPolicy();
  const counted = decideOften(initialAutoscaler(policy), policy, 600, 14);
  const agreed = decideTarget(counted, policy, 60);
  expect(agreed).toEqual({ target: 1, upCount: 0, downCount: 0 });
  expect(decideOften(agreed, policy, 600, 14).target).toBe(1);
});

test('a wish to go down forgets the wishes to go up', () => {
  const policy = aPolicy();
  const memory = decideOften({ target: 2, upCount: 0, downCount: 0 }, policy, 600, 3);
  expect(decideTarget(memory, policy, 0)).toEqual({ target: 2, upCount: 0, downCount: 1 });
});

test('a delay under one tick is adopted at once', () => {
  expect(decideTarget(initialAutoscaler(aPolicy()), aPolicy({ upscaleDelaySeconds: 19.9 }), 600).target).toBe(5);
});

test('leaves zero at once and decides more often there', () => {
  const policy = aPolicy({ minReplicas: 0 });
  const memory = initialAutoscaler(policy);
  expect(nextDecisionMs(memory)).toBe(5_000);
  const next = decideTarget(memory, policy, 1);
  expect(next.target).toBe(1);
  expect(nextDecisionMs(next)).toBe(20_000);
});

test('the target never leaves its bounds', () => {
  const property = fc.property(
    fc.nat(5),
    fc.nat(10),
    fc.array(fc.nat(5_000), { maxLength: 80 }),
    fc.nat(100),
    (min, more, counts, delay) => {
      const policy = aPolicy({ minReplicas: min, maxReplicas: min + more, upscaleDelaySeconds: delay, downscaleDelaySeconds: delay });
      let memory = initialAutoscaler(policy);
      for (const count of counts) {
        memory = decideTarget(memory, policy, count);
        expect(memory.target).toBeGreaterThanOrEqual(min);
        expect(memory.target).toBeLessThanOrEqual(min + more);
      }
    },
  );
  fc.assert(property);
});

test('the window counts the last minute and forgets the rest', () => {
  let window: RequestWindow = [];
  for (let second = 0; second < 120; second += 1) window = addArrivals(window, second * 1_000, 2);
  expect(requestsInWindow(window, 119_000)).toBe(120);
  expect(requestsInWindow(window, 150_000)).toBe(58);
  expect(window.length).toBeLessThanOrEqual(60);
});
