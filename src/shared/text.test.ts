import { expect, test } from 'vitest';
import { printable, quote } from './text.ts';

test('characters that could change a terminal become dots', () => {
  expect(printable('a\u001b[31mb\u202ec\u200bd\r\n\te\u0000\u0085\u2028\uFEFF')).toBe('a·[31mb·c·d·· e····');
  expect(printable('plain é 漢 🎉')).toBe('plain é 漢 🎉');
});

test('quoted text is truncated', () => {
  expect(quote('abc')).toBe("'abc'");
  expect(quote('x'.repeat(100), 5)).toBe("'xxxxx…'");
});
