import { expect, test } from 'vitest';
import { printable, quote, asSentence, redact } from './text.ts';

test('characters that could change a terminal become dots', () => {
  expect(printable('a\u001b[31mb\u202ec\u200bd\r\n\te\u0000\u0085\u2028\uFEFF')).toBe('a·[31mb·c·d·· e····');
  expect(printable('plain é 漢 🎉')).toBe('plain é 漢 🎉');
});

test('quoted text is truncated', () => {
  expect(quote('abc')).toBe("'abc'");
  expect(quote('x'.repeat(100), 5)).toBe("'xxxxx…'");
});

test('a text without a final full stop gets one', () => {
  expect(['no room', 'No room. ', 'Why?', 'No!'].map(asSentence)).toEqual(['no room.', 'No room.', 'Why?', 'No!']);
});

test.each<[string, readonly string[], string]>([
  ['Bearer hunter2!', ['hunter2'], 'Bearer ***!'],
  ['hunter2hunter2', ['hunter2'], '******'],
  ['{"a":"x\\"y\\nz"}', ['x"y\nz'], '{"a":"***"}'],
  ['abcdef', ['abcd', 'abcdef'], '***'],
  ['short: abc', ['abc', ''], 'short: abc'],
  ['nothing', [], 'nothing'],
])('%j without %j', (text, secrets, expected) => {
  expect(redact(text, secrets)).toBe(expected);
});
