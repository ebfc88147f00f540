import { expect, test } from 'vitest';
import { machineLimits } from './machine-limits.ts';

test('exact amounts are limits, and amounts with + are not', () => {
  expect(machineLimits({ cpus: { value: 0.5, atLeast: false }, memory: { value: 2, atLeast: true } })).toEqual({ cpus: 0.5 });
  expect(machineLimits({ cpus: undefined, memory: { value: 1, atLeast: false } })).toEqual({ memoryGb: 1 });
});
