import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { decideTarget, initialAutoscaler, type AutoscalerMemory, type ServiceLoad } from './autoscale.ts';
import type { LoadSignals } from './load-signals.ts';
import type { ReplicaPolicy } from './task.ts';

const policy: ReplicaPolicy = {
  ...aServiceSpec().replicaPolicy,
  minReplicas: 0,
  maxReplicas: 1_000,
  autoscaler: 'forecast',
  targetQpsPerReplica: 7,
};
const aLoad = (signals: Partial<LoadSignals>, change: Partial<ServiceLoad> = {}): ServiceLoad => ({
  requestsInWindow: 0,
  busy: 0,
  fleet: { living: [], toCome: 1 },
  isComplete: true,
  signals: { recent: [], ongoing: { minute: 0, moment: 0 }, inFlight: 0, queued: 0, readyReplicas: 0, coldStartSeconds: 180, ...signals },
  ...change,
});

/** Decides once in ten seconds while these requests per second arrive; starts with ten minutes of the first rate. */
function decideOver(rates: readonly number[], memory: AutoscalerMemory = initialAutoscaler(policy)): readonly AutoscalerMemory[] {
  let recent: readonly number[] = Array.from({ length: 60 }, () => (rates[0] ?? 0) * 10);
  let last = memory;
  return rates.map((rate) => {
    recent = [rate * 10, ...recent.slice(0, 59)];
    last = decideTarget(last, policy, aLoad({ recent }));
    return last;
  });
}
const steps = (count: number, rate: number): readonly number[] => Array.from({ length: count }, () => rate);
const targets = (rates: readonly number[]): readonly number[] => decideOver(rates).map(({ target }) => target);

test('a steady load needs little more than what the replicas can serve', () => {
  // 100 requests per second; a replica serves 10 when the target of 7 is 70 % of it.
  const reached = targets(steps(1_000, 100));
  expect(reached[0]).toBeGreaterThanOrEqual(12);
  expect(reached.at(-1)).toBeLessThanOrEqual(11);
});

test('a jump raises the number within one decision, and a lull lowers it only after five minutes', () => {
  const reached = targets([...steps(200, 50), ...steps(3, 150), ...steps(100, 50)]);
  expect(reached[199]).toBeLessThanOrEqual(7);
  expect(reached[201]).toBeGreaterThanOrEqual(15);
  expect(reached[202 + 30]).toBeGreaterThanOrEqual(15);
  expect(reached.at(-1)).toBeLessThanOrEqual(9);
});

test('a load that often jumps gets more head-room than a steady one with the same mean', () => {
  const jumpy = Array.from({ length: 2_000 }, (_, step) => (step % 90 < 75 ? 80 : 200));
  const steady = steps(2_000, 100);
  expect(targets(jumpy)[1_950]).toBeGreaterThan((targets(steady)[1_950] ?? 0) + 5);
});

test('queued requests are served on top of the rate', () => {
  const memory = decideOver(steps(300, 50)).at(-1) ?? initialAutoscaler(policy);
  const recent = steps(60, 500);
  const target = (signals: Partial<LoadSignals>, ongoing?: number): number =>
    decideTarget(memory, { ...policy, targetOngoingRequestsPerReplica: ongoing }, aLoad({ recent, ...signals })).target;
  expect(target({})).toBeLessThanOrEqual(6);
  expect(target({ queued: 1_000 })).toBe(9);
  // Beyond ten requests for each ready replica, requests in flight wait in its program.
  expect([target({ inFlight: 1_050, readyReplicas: 5 }), target({ inFlight: 1_050, readyReplicas: 5 }, 7)]).toEqual([target({}), 9]);
});

test('a shorter time to the first byte needs more replicas for bursts', () => {
  const recent = [600, 600, 6_000, ...steps(57, 600)];
  const target = (targetTtfbSeconds: number): number =>
    decideTarget(initialAutoscaler(policy), { ...policy, targetTtfbSeconds }, aLoad({ recent })).target;
  expect(target(0.5)).toBeGreaterThan(target(20));
});

test('the bounds hold, and a queued request keeps one replica', () => {
  const bounded = { ...policy, minReplicas: 2, maxReplicas: 4 };
  expect(decideTarget(initialAutoscaler(bounded), bounded, aLoad({ recent: steps(60, 5_000) })).target).toBe(4);
  expect(decideTarget(initialAutoscaler(bounded), bounded, aLoad({ recent: steps(60, 0) })).target).toBe(2);
  expect(decideTarget(initialAutoscaler(policy), policy, aLoad({ recent: steps(60, 0) }, { busy: 1 })).target).toBe(1);
});

test('a service without requests for ten minutes and the hold sleeps', () => {
  expect(targets([...steps(10, 1), ...steps(100, 0)]).at(-1)).toBe(0);
});

test.each([
  ['an incomplete count', aLoad({ recent: [0, 0] }, { isComplete: false })],
  ['no observed time', aLoad({ recent: [] })],
  ['no signals', { requestsInWindow: 0, busy: 0, fleet: { living: [], toCome: 1 }, isComplete: true }],
])('%s neither scales down nor is learnt from', (_about, load) => {
  const memory = decideOver(steps(100, 100)).at(-1) ?? initialAutoscaler(policy);
  expect(decideTarget({ ...memory, target: 20 }, policy, load)).toEqual({ ...memory, target: 20 });
});

test('an incomplete count may scale up', () => {
  const load = aLoad({ recent: steps(5, 1_000) }, { isComplete: false });
  expect(decideTarget({ target: 1, upCount: 0, downCount: 0 }, policy, load).target).toBeGreaterThanOrEqual(10);
});

test('the stored state stays below 4 KB, also with a cold start of an hour', () => {
  let memory = initialAutoscaler(policy);
  for (let step = 0; step < 2_500; step++) {
    const recent = Array.from({ length: 60 }, (_, slot) => 10_000 + ((step - slot) % 37) * 123.456);
    memory = decideTarget(memory, policy, aLoad({ recent, coldStartSeconds: 3_600 }));
  }
  expect(JSON.stringify(memory).length).toBeLessThan(4_096);
});
