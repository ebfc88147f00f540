import { expect, test } from 'vitest';
import { codeIndexOf, codeLabels, rejectIndexOf, rejectReasons } from './label-values.ts';

const codeOf = (status: number): string | undefined => codeLabels[codeIndexOf(status)];

test('a known status has its own series, others that of their class', () => {
  expect([200, 503, 418, 299, 599, 100, 0].map(codeOf)).toEqual(['200', '503', '4xx', '2xx', '5xx', '1xx', 'none']);
  for (let status = 600; status < 1_000; status += 1) expect(codeOf(status)).toBe('none');
});

test('a code outside the list counts as "other"', () => {
  expect(rejectReasons[rejectIndexOf('bad_host')]).toBe('bad_host');
  expect(rejectReasons[rejectIndexOf('from_the_future')]).toBe('other');
});
