import { expect, test } from 'vitest';
import { SourceText } from './source-text.ts';

test('positions count from 1; offsets beyond the end give the last position', () => {
  const source = new SourceText('ab\n\ncd', 'x');
  const positions = [0, 1, 2, 3, 4, 5, 6, 99].map((offset) => source.position(offset)).map(({ line, column }) => `${line}:${column}`);
  expect(positions).toEqual(['1:1', '1:2', '1:3', '2:1', '3:1', '3:2', '3:3', '3:3']);
});

test('an excerpt includes a non-empty line before; line numbers have equal width', () => {
  const source = new SourceText(Array.from({ length: 12 }, (_, index) => (index === 3 ? '' : `line ${index + 1}`)).join('\n'), 'x');
  expect(source.excerpt(source.text.indexOf('line 10'))).toBe(' 9 | line 9\n10 | line 10\n   | ^');
  expect(source.excerpt(source.text.indexOf('line 5') + 5)).toBe('5 | line 5\n  |      ^');
});

test('a long line is cut around the caret', () => {
  const text = `${'a'.repeat(300)}X${'b'.repeat(300)}`;
  const [line = '', caret = ''] = new SourceText(text, 'x').excerpt(300).split('\n');
  expect(line.length).toBeLessThan(115);
  expect(line.indexOf('X')).toBe(caret.indexOf('^'));
  expect(line).toMatch(/^1 \| …a+Xb+…$/);
});

test('tabs and Windows line ends do not move the caret', () => {
  expect(new SourceText('\ta: b\r\n', 'x').excerpt(4)).toBe('1 |  a: b\n  |     ^');
});

test('values below secrets are masked wherever the section is', () => {
  const lines = [
    'secrets:',
    '  A: one',
    '  B: "two',
    '    three"',
    '  # four',
    '  C: |',
    '    five',
    'run: x',
    'secrets: {D: six}',
    '{a: 1, "secrets": {E: seven}}',
    'secrets:',
    '- eight',
    'name: y',
  ];
  const source = new SourceText(lines.join('\n'), 'x');
  const shown = lines.map((_, index) =>
    source
      .excerpt(lines.slice(0, index).join('\n').length + (index === 0 ? 0 : 1))
      .split('\n')
      .at(-2)
      ?.replace(/^ *\d+ \| /, ''),
  );
  expect(shown).toEqual([
    'secrets:',
    '  A: ***',
    '  B: ***',
    '    ***',
    '  ***',
    '  C: ***',
    '    ***',
    'run: x',
    'secrets: ***',
    '{a: 1, "secrets": ***',
    'secrets:',
    '***',
    'name: y',
  ]);
});
