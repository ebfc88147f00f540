import { expect, test } from 'vitest';
import { redact } from './redact.ts';

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
