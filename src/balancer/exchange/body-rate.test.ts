import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BodyRate, graceMs, maxAheadMs, minBytesPerSecond } from './upload.ts';

/** Sends `bytes` each second; returns the second in which the upload was found too slow, up to an hour. */
function cutAfter(bytes: number): number | undefined {
  const rate = new BodyRate(0);
  for (let second = 1; second <= 3_600; second += 1) {
    if (rate.tooSlowAt <= second * 1_000) return second;
    rate.received(second * 1_000, bytes);
  }
  return undefined;
}

test('an upload without any bytes is too slow after the grace period', () => {
  expect(new BodyRate(500).tooSlowAt).toBe(500 + graceMs);
});

test('a rate below the minimum uses up the grace period', () => {
  expect(cutAfter(1)).toBe(11);
  expect(cutAfter(120)).toBe(19);
});

test('the minimum rate and any higher rate may continue for ever', () => {
  expect([minBytesPerSecond, 1_000, 1_000_000].map(cutAfter)).toEqual([undefined, undefined, undefined]);
});

test('bytes sent ahead allow a stall of one minute at most', () => {
  const rate = new BodyRate(0);
  rate.received(100, 10_000_000);
  expect(rate.tooSlowAt).toBe(100 + maxAheadMs);
});

test('time in which the replica takes no more does not count against the client', () => {
  const rate = new BodyRate(0);
  rate.holdUp(4_000);
  expect(rate.tooSlowAt).toBe(Number.POSITIVE_INFINITY);
  rate.goOn(900_000);
  expect(rate.tooSlowAt).toBe(900_000 + graceMs - 4_000);
  rate.holdUp(901_000);
  rate.holdUp(902_000);
  rate.goOn(903_000);
  expect(rate.tooSlowAt).toBe(903_000 + graceMs - 5_000);
});

test('no sending pattern stays below the minimum rate for long', () => {
  const pattern = fc.array(fc.tuple(fc.nat(20_000), fc.nat(5_000)), { minLength: 1, maxLength: 20 });
  const property = fc.property(pattern, (steps) => {
    const rate = new BodyRate(0);
    let now = 0;
    let bytes = 0;
    for (let turn = 0; now < 240_000 && turn < 10_000; turn += 1) {
      const [pause = 0, amount = 0] = steps[turn % steps.length] ?? [];
      now += pause + 1;
      if (rate.tooSlowAt <= now) return true;
      rate.received(now, amount);
      bytes += amount;
    }
    // The grace period is the only time that no byte paid for.
    return bytes >= ((now - graceMs) / 1_000) * minBytesPerSecond * 0.99;
  });
  fc.assert(property);
});
