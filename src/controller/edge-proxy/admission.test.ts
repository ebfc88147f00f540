import { expect, test } from 'vitest';
import { admissionLimits, mostGreedy } from './admission.ts';

test('the address with the most connections loses its oldest one', () => {
  const strangers = ['kubelet', 'many', 'other', 'many', 'many'].map((address, index) => ({ address, index }));
  expect(mostGreedy(strangers)).toEqual({ address: 'many', index: 1 });
  expect(mostGreedy(strangers.slice(0, 3))).toEqual({ address: 'kubelet', index: 0 });
  expect(mostGreedy([])).toBeUndefined();
});

test('the connection limit for strangers is below the limit for authenticated clients', () => {
  expect(admissionLimits.strangers).toBeLessThan(admissionLimits.known);
});
