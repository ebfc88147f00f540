import fc from 'fast-check';
import { expect, test } from 'vitest';
import { delayMs, type Backoff } from './backoff.ts';
import { seededRandom } from './random.ts';

const delays = (backoff: Backoff, random?: () => number): readonly number[] =>
  [0, 1, 2, 3, 4, 5].map((failures) => delayMs(backoff, failures, random));

test('the delay doubles with each failure, up to the longest', () => {
  expect(delays({ firstMs: 100, longestMs: 500 })).toEqual([0, 100, 200, 400, 500, 500]);
});

test('a factor other than 2 is honoured', () => {
  expect(delays({ firstMs: 60, longestMs: 200, factor: 1.5 })).toEqual([0, 60, 90, 135, 200, 200]);
});

test('jitter reduces the delay by at most its share', () => {
  const backoff = { firstMs: 100, longestMs: 500, jitter: 0.5 };
  expect(delays(backoff, () => 0)).toEqual([0, 50, 100, 200, 250, 250]);
  expect(delays(backoff, () => 0.5)).toEqual([0, 75, 150, 300, 375, 375]);
  expect(delays(backoff)).toEqual([0, 100, 200, 400, 500, 500]);
});

test('without jitter the random number has no effect', () => {
  expect(delays({ firstMs: 100, longestMs: 500 }, () => 0)).toEqual([0, 100, 200, 400, 500, 500]);
});

test('the delay stays within its bounds and never shrinks without jitter', () => {
  const backoffs = fc.record({
    firstMs: fc.integer({ min: 1, max: 100_000 }),
    longestMs: fc.integer({ min: 100_000, max: 3_600_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const counts = fc.oneof(fc.integer({ min: 1, max: 100 }), fc.constantFrom(2_000, Number.MAX_SAFE_INTEGER));
  fc.assert(
    fc.property(backoffs, counts, fc.integer(), (backoff, failures, seed) => {
      const whole = delayMs(backoff, failures);
      const random = delayMs(backoff, failures, seededRandom(seed));
      expect(whole).toBeGreaterThanOrEqual(backoff.firstMs);
      expect(whole).toBeLessThanOrEqual(backoff.longestMs);
      expect(whole).toBeLessThanOrEqual(delayMs(backoff, failures + 1));
      expect(random).toBeLessThanOrEqual(whole);
      expect(random).toBeGreaterThanOrEqual(whole * (1 - backoff.jitter) - 1e-9);
    }),
  );
});
