import fc from 'fast-check';
import { expect, test } from 'vitest';
import { displayWidth, oneLine, padTo, safeLines, truncate, truncateMiddle } from './display-text.ts';

test('escape sequences and control characters of a program are removed', () => {
  expect(oneLine('\u001B[31mred\u001B[0m\u0007\r\n  and\tmore\u009B2J')).toBe('red and more');
  expect(safeLines('a\u001B[2J\n  b\u0000\tc\r')).toEqual(['a', '  b  c']);
});

test('a single line never contains a control character', () => {
  const property = fc.property(fc.string({ unit: 'binary' }), (text) => !/\p{Control}/u.test(oneLine(text)));
  fc.assert(property);
});

test.for([
  ['chat', 4],
  ['über', 4],
  ['u\u0308ber', 4],
  ['日本', 4],
  ['🚀', 2],
  ['', 0],
] as const)('%s takes %d columns', ([text, width]) => {
  expect(displayWidth(text)).toBe(width);
});

test('a cut text fits its width and ends with a mark', () => {
  expect(truncate('replica', 4)).toBe('rep…');
  expect(truncate('日本語', 4)).toBe('日…');
  expect(truncate('chat', 4)).toBe('chat');
  const property = fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, width) => displayWidth(truncate(text, width)) <= width);
  fc.assert(property);
});

test('padding counts columns, not characters', () => {
  expect(padTo('日本', 6)).toBe('日本  ');
  expect(padTo('longer', 3)).toBe('longer');
});

const pull =
  'ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "registry.test/web:1": failed to resolve: registry.test/web:1: not found';

test.for([20, 40, 41, 80])('a text cut in its middle keeps its beginning and end, in %i columns', (width) => {
  const cut = truncateMiddle(pull, width);
  expect(displayWidth(cut)).toBe(width);
  expect(cut).toMatch(/^ErrImage.*….*ound$/);
});

test('a fitting text is unchanged; characters of two columns are not split', () => {
  expect(truncateMiddle(pull, 200)).toBe(pull);
  const cut = truncateMiddle('日本語日本語日本語日本語', 11);
  expect(cut).toBe('日本語…本語');
  expect(displayWidth(cut)).toBeLessThanOrEqual(11);
});
