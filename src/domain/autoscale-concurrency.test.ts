import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { decideTarget, initialAutoscaler, type AutoscalerMemory, nextDecisionMs } from './autoscale.ts';
import type { LoadSignals } from './load-signals.ts';
import type { ReplicaPolicy } from './task.ts';

const policy: ReplicaPolicy = {
  ...aServiceSpec().replicaPolicy,
  minReplicas: 1,
  maxReplicas: 20,
  autoscaler: 'concurrency',
  targetOngoingRequestsPerReplica: 10,
  upscaleDelaySeconds: 0,
  downscaleDelaySeconds: 30,
};
const decide = (memory: AutoscalerMemory, change: Partial<LoadSignals>, isComplete = true, by = policy): AutoscalerMemory =>
  decideTarget(memory, by, {
    requestsInWindow: 0,
    busy: 0,
    fleet: { living: [], toCome: 1 },
    isComplete,
    signals: { recent: [], ongoing: { minute: 0, moment: 0 }, inFlight: 0, queued: 0, readyReplicas: 1, coldStartSeconds: 20, ...change },
  });
const at = (minute: number, moment = minute): Partial<LoadSignals> => ({ ongoing: { minute, moment }, readyReplicas: 20 });

test('the mean of the last minute sets the number at once', () => {
  expect(decide(initialAutoscaler(policy), at(41)).target).toBe(5);
});

test('in panic the last seconds count, and the number does not fall for a minute', () => {
  let memory = decide(initialAutoscaler(policy), { ongoing: { minute: 10, moment: 80 }, readyReplicas: 4 });
  expect(memory.target).toBe(8);
  for (let step = 0; step < 11; step++) memory = decide(memory, at(10));
  expect([memory.target, memory.panic?.left]).toEqual([8, 1]);
  for (let step = 0; step < 7; step++) memory = decide(memory, at(10));
  expect(memory).toEqual({ target: 1, upCount: 0, downCount: 0 });
});

test('less than twice the ready replicas is no panic', () => {
  expect(decide(initialAutoscaler(policy), { ongoing: { minute: 10, moment: 70 }, readyReplicas: 4 }).target).toBe(1);
});

test('the number falls after the delay, to the most that was required during it', () => {
  let memory: AutoscalerMemory = { target: 9, upCount: 0, downCount: 0 };
  for (const minute of [20, 70, 20, 20, 20]) memory = decide(memory, at(minute));
  expect(memory.target).toBe(9);
  expect(decide(memory, at(20)).target).toBe(7);
});

test('a delay shorter than the cold start is as long as the cold start', () => {
  let memory: AutoscalerMemory = { target: 9, upCount: 0, downCount: 0 };
  for (let step = 0; step < 19; step++) memory = decide(memory, { ...at(20), coldStartSeconds: 100 });
  expect(memory.target).toBe(9);
  expect(decide(memory, { ...at(20), coldStartSeconds: 100 }).target).toBe(2);
});

test('the delay for more replicas is that of the file', () => {
  const slow = { ...policy, upscaleDelaySeconds: 10 };
  const once = decide(initialAutoscaler(slow), at(41), true, slow);
  expect([once.target, decide(once, at(41), true, slow).target]).toEqual([1, 5]);
});

test('incomplete data does not scale down', () => {
  const memory: AutoscalerMemory = { target: 9, upCount: 0, downCount: 5 };
  expect(decide(memory, at(0), false)).toBe(memory);
});

test('it decides each five seconds', () => {
  expect(nextDecisionMs(initialAutoscaler(policy), policy)).toBe(5_000);
});
