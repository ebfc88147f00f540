import { expect, test } from 'vitest';
import { admissionLimits, mostGreedy } from './admission.ts';

test('who has the most connections gives up its oldest one', () => {
  const strangers = ['kubelet', 'many', 'other', 'many', 'many'].map((address, index) => ({ address, index }));
  expect(mostGreedy(strangers)).toEqual({ address: 'many', index: 1 });
  expect(mostGreedy(strangers.slice(0, 3))).toEqual({ address: 'kubelet', index: 0 });
  expect(mostGreedy([])).toBeUndefined();
});

test('strangers never have as many connections as those that know the token', () => {
  expect(admissionLimits.strangers).toBeLessThan(admissionLimits.known);
});
