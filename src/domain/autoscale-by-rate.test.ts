import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ReplicaPolicy } from './task.ts';
import {
  type AutoscalerMemory,
  type RequestWindow,
  type ServiceLoad,
  addArrivals,
  countArrivals,
  decideTarget as decide,
  desiredReplicas as desiredFor,
  initialAutoscaler,
  nextDecisionMs,
} from './autoscale.ts';

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
const desiredReplicas = (policy: ReplicaPolicy, requests: number): number => desiredFor(policy, requestsOnly(requests));
const decideTarget = (memory: AutoscalerMemory, policy: ReplicaPolicy, requests: number): AutoscalerMemory =>
  decide(memory, policy, requestsOnly(requests));

/** Feeds the same count of requests to several decisions in a row. */
const decideOften = (memory: AutoscalerMemory, policy: ReplicaPolicy, requests: number, times: number): AutoscalerMemory =>
  Array.from({ length: times }).reduce<AutoscalerMemory>((last) => decideTarget(last, policy, requests), memory);

test.each([
  ['no requests', 0, 1],
  ['the capacity of one replica', 120, 1],
  ['one request more than the capacity of one replica', 121, 2],
  ['the capacity of five replicas', 600, 5],
  ['more than the capacity of the largest number', 100_000, 10],
])('%s in a minute: %d requests require %d replicas', (_name, requests, desired) => {
  expect(desiredReplicas(aPolicy(), requests)).toBe(desired);
});

test('a fixed service always desires its number', () => {
  expect(desiredReplicas(aPolicy({ minReplicas: 3, maxReplicas: 3, targetQpsPerReplica: undefined }), 100_000)).toBe(3);
});

test('scales up after 15 consecutive decisions at the default delay of 300 s', () => {
  const policy = aPolicy();
  const almost = decideOften(initialAutoscaler(policy), policy, 600, 14);
  expect(almost).toEqual({ target: 1, upCount: 14, downCount: 0 });
  expect(decideTarget(almost, policy, 600)).toEqual({ target: 5, upCount: 0, downCount: 0 });
});

test('scales down after 60 consecutive decisions at the default delay of 1200 s', () => {
  const policy = aPolicy();
  const almost = decideOften({ target: 5, upCount: 0, downCount: 0 }, policy, 0, 59);
  expect(almost.target).toBe(5);
  expect(decideTarget(almost, policy, 0).target).toBe(1);
});

test('a decision without a change resets the counters', () => {
  const policy = aPolicy();
  const counted = decideOften(initialAutoscaler(policy), policy, 600, 14);
  const agreed = decideTarget(counted, policy, 60);
  expect(agreed).toEqual({ target: 1, upCount: 0, downCount: 0 });
  expect(decideOften(agreed, policy, 600, 14).target).toBe(1);
});

test('a decision to scale down resets the decisions to scale up', () => {
  const policy = aPolicy();
  const memory = decideOften({ target: 2, upCount: 0, downCount: 0 }, policy, 600, 3);
  expect(decideTarget(memory, policy, 0)).toEqual({ target: 2, upCount: 0, downCount: 1 });
});

test('a delay below one tick is adopted at once', () => {
  expect(decideTarget(initialAutoscaler(aPolicy()), aPolicy({ upscaleDelaySeconds: 19.9 }), 600).target).toBe(5);
});

test('from zero it scales up at once and decides more often', () => {
  const policy = aPolicy({ minReplicas: 0 });
  const memory = initialAutoscaler(policy);
  expect(nextDecisionMs(memory)).toBe(5_000);
  const next = decideTarget(memory, policy, 1);
  expect(next.target).toBe(1);
  expect(nextDecisionMs(next)).toBe(20_000);
});

test('the target always stays within its bounds', () => {
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

test('the window counts only the requests of the last minute', () => {
  let window: RequestWindow = [];
  for (let second = 0; second < 120; second += 1) window = addArrivals(window, second * 1_000, 2);
  expect(countArrivals(window, 119_000)).toBe(120);
  expect(countArrivals(window, 150_000)).toBe(58);
  expect(window.length).toBeLessThanOrEqual(60);
});
