import { expect, test } from 'vitest';
import { errorCodes } from '../../src/shared/error-codes.ts';
import { allSources, lineOf, productSources, readSources } from './source-tree.ts';

const known = new Set<string>(Object.keys(errorCodes));
const tablePath = 'src/shared/error-codes.ts';

const uses = (text: string, code: string): boolean => new RegExp(`['"\`]${code}['"\`]`).test(text);

test('every error code that is thrown is in the table', () => {
  const thrown = productSources.flatMap(({ path, text }) =>
    [...text.matchAll(/new SvcError\(\s*'(\w+)'/g)].map((match) => ({ code: match[1] ?? '', at: `${path}:${lineOf(text, match.index)}` })),
  );
  expect(thrown.filter(({ code }) => !known.has(code))).toEqual([]);
});

test('every error code of the table is thrown by the source', () => {
  const sources = productSources.filter(({ path }) => path !== tablePath);
  expect([...known].filter((code) => !sources.some(({ text }) => uses(text, code)))).toEqual([]);
});

test('every error code is shown by a test', () => {
  const tests = [...allSources.filter(({ path }) => path.endsWith('.test.ts')), ...readSources('test/e2e/**/*.test.ts')];
  expect([...known].filter((code) => !tests.some(({ text }) => new RegExp(`\\b${code}\\b`).test(text)))).toEqual([]);
});

test('every row states the error and the remedy as sentences', () => {
  const bad = Object.entries(errorCodes).filter(([, { meaning, remedy }]) => !meaning.endsWith('.') || remedy.length < 10);
  expect(bad).toEqual([]);
});
