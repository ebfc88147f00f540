import fc from 'fast-check';
import { expect, test } from 'vitest';
import { launchGate, rememberFailure, type Failure } from './crash-loop.ts';

/** Shortly after all failures, unless a test says otherwise. */
const now = 0;

const neverReady = (at: number): Failure => ({ at, everReady: false, readyMs: 0, killed: false });
const killedWhileReady = (at: number): Failure => ({ at, everReady: true, readyMs: 800, killed: true });
const crashedSoon = (at: number): Failure => ({ at, everReady: true, readyMs: 2_000, killed: false });
const unstarted = (count: number): readonly Failure[] =>
  Array.from({ length: count }, (_, index) => ({ ...neverReady(index), neverStarted: true }));

test('without failures no launch is delayed', () => {
  expect(launchGate([], 2, false, now)).toEqual({ notBefore: 0, atMost: Infinity, rounds: 0, gaveUp: false });
});

test('the backoff doubles from one second to five minutes', () => {
  const failures = Array.from({ length: 12 }, () => crashedSoon(1_000));
  const pauses = failures.map((_, index) => launchGate(failures.slice(0, index + 1), 1, true, now).notBefore - 1_000);
  expect(pauses[0]).toBeGreaterThanOrEqual(800);
  expect(pauses[0]).toBeLessThanOrEqual(1_200);
  for (let index = 1; index < 8; index += 1) expect((pauses[index] ?? 0) / (pauses[index - 1] ?? 1)).toBeCloseTo(2);
  expect(pauses[11]).toBeLessThanOrEqual(300_000);
  expect(pauses[11]).toBeGreaterThanOrEqual(240_000);
});

test('the guard gives up after five rounds unless the service was ever ready', () => {
  const failures = Array.from({ length: 10 }, (_, index) => neverReady(index));
  expect(launchGate(failures.slice(0, 8), 2, false, now).gaveUp).toBe(false);
  expect(launchGate(failures, 2, false, now).gaveUp).toBe(true);
  expect(launchGate(failures, 2, true, now).gaveUp).toBe(false);
});

test('the guard gives up after three failed starts and limits concurrent launches', () => {
  const gates = [1, 2, 3].map((count) => launchGate(unstarted(count), 4, false, now));
  expect(gates.map(({ atMost, gaveUp }) => [atMost, gaveUp])).toEqual([
    [2, false],
    [1, false],
    [0, true],
  ]);
  // A service that was ready before is not limited.
  expect(launchGate(unstarted(8), 4, true, now)).toMatchObject({ atMost: Infinity, gaveUp: false });
});

test('replicas that fail together count as one round', () => {
  const together = Array.from({ length: 4 }, () => neverReady(5_000));
  expect(launchGate(together, 4, true, now).rounds).toBe(1);
});

test('a replica killed every second for ten minutes is replaced at once each time', () => {
  let failures: readonly Failure[] = [];
  for (let second = 0; second < 600; second += 1) {
    failures = rememberFailure(failures, killedWhileReady(second * 1_000));
    expect(launchGate(failures, 2, true, now).notBefore).toBe(0);
  }
});

test('endless kills, as by the OOM killer, lead to a backoff', () => {
  const failures = Array.from({ length: 620 }, (_, index) => killedWhileReady(index * 500));
  expect(launchGate(failures, 1, true, 310_000).notBefore).toBeGreaterThan(310_000 + 60_000);
});

test('a failure after a long healthy time restarts the count', () => {
  const failures = [...Array.from({ length: 6 }, () => crashedSoon(0)), { at: 1e6, everReady: true, readyMs: 900_000, killed: false }];
  expect(launchGate(failures, 1, true, now)).toEqual({ notBefore: 0, atMost: Infinity, rounds: 0, gaveUp: false });
});

test('old failures expire, and a clock that was set back delays no launch', () => {
  const failures = Array.from({ length: 8 }, () => crashedSoon(1_000));
  expect(launchGate(failures, 1, true, 700_000).rounds).toBe(0);
  const ahead = Array.from({ length: 8 }, () => crashedSoon(9_000_000));
  expect(launchGate(ahead, 1, true, 1_000).notBefore).toBeLessThanOrEqual(301_000);
});

test('the delay after the last failure never exceeds five minutes', () => {
  const failure = fc.record({ at: fc.nat(1e7), everReady: fc.boolean(), readyMs: fc.nat(100_000), killed: fc.boolean() });
  const property = fc.property(
    fc.array(failure, { maxLength: 200 }),
    fc.integer({ min: 0, max: 9 }),
    fc.boolean(),
    (list, target, ever) => {
      const failures = list.toSorted((a, b) => a.at - b.at);
      expect(launchGate(failures, target, ever, now).notBefore).toBeLessThanOrEqual((failures.at(-1)?.at ?? 0) + 300_000);
    },
  );
  fc.assert(property);
});
