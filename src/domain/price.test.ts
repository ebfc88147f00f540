import { expect, test } from 'vitest';
import { dollars, hourlyPrice } from './price.ts';

test.each([
  [0, '0.00'],
  [0.0042, '0.0042'],
  [0.1, '0.10'],
  [0.1921, '0.192'],
  [0.9999, '1.00'],
  [55.0401, '55.04'],
])('%d dollars are formatted as %s', (amount, text) => {
  expect(dollars(amount)).toBe(text);
});

test('a price has its unit', () => {
  expect(hourlyPrice(3.2)).toBe('3.20 $/h');
});
