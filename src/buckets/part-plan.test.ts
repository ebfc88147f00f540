import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planParts, smallestPart } from './part-plan.ts';

test("parts cover the file in order, within S3's limits of size and number", () => {
  // 5 TiB is the largest object.
  const property = fc.property(fc.integer({ min: 0, max: 5_497_558_138_880 }), (size) => {
    const parts = planParts(size);
    const isGapless = parts.every(
      ({ number, start }, index) => number === index + 1 && start === (parts[index - 1]?.start ?? 0) + (parts[index - 1]?.size ?? 0),
    );
    const last = parts.at(-1);
    expect(isGapless && (last?.start ?? 0) + (last?.size ?? 0) === size).toBe(true);
    expect(parts.slice(0, -1).every((part) => part.size >= smallestPart)).toBe(true);
    expect(parts.length).toBeLessThanOrEqual(10_000);
  });
  fc.assert(property, { numRuns: 50 });
});
