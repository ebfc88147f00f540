import { expect, test } from 'vitest';
import { maskSource } from './mask-source.ts';

/** Returns the unmasked rest of a text, with runs of blanks shortened. */
const codeOf = (text: string): string => maskSource(text).codeOnly.replaceAll(/ +/g, ' ');

test('comments and strings are blanked and the surrounding code is kept', () => {
  expect(codeOf(`const a = 'console.log'; // Date.now()\nfoo(/* Math.random() */ "x\\"y");`)).toBe(`const a = ' '; \nfoo( " ");`);
});

test('code inside a template is kept and its text is blanked', () => {
  expect(codeOf('const a = `console ${b({ c: `Date ${d}` })} Math`;')).toBe('const a = ` ${b({ c: ` ${d}` })} `;');
});

test('a regular expression is neither comment nor string', () => {
  expect(codeOf(`const a = /['"]\\/[/*]/g; const b = c / d; // '`)).toBe('const a = ; const b = c / d; ');
});

test('line and column positions are preserved', () => {
  const text = '/* one\ntwo */ const a = `three\nfour`;\n';
  const { codeOnly, withoutComments } = maskSource(text);
  expect([codeOnly.length, withoutComments.length]).toEqual([text.length, text.length]);
  expect(codeOnly.split('\n').length).toBe(text.split('\n').length);
});
