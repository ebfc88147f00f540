import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { parseDotenv } from './collect-envs.ts';

test.each<[string, Readonly<Record<string, string | undefined>>]>([
  ['', {}],
  ['A=1', { A: '1' }],
  ['A=1\nB = two words \n', { A: '1', B: 'two words' }],
  ['# comment\n\n  # another\nA=1', { A: '1' }],
  ['export A=1', { A: '1' }],
  ['A=', { A: '' }],
  ['A', { A: undefined }],
  ['A # from here', { A: undefined }],
  ['A=b#c', { A: 'b#c' }],
  ['A=b # c', { A: 'b' }],
  ['A=# c', { A: '' }],
  ["A='b # c'", { A: 'b # c' }],
  ['A="b # c" # d', { A: 'b # c' }],
  [`A='\\n$X"'`, { A: '\\n$X"' }],
  ['A="x\\ny\\t\\"z\\"\\\\ \\$ \\q"', { A: 'x\ny\t"z"\\ $ \\q' }],
  ['A="one\ntwo"\nB=3', { A: 'one\ntwo', B: '3' }],
  ["A='one\n\ntwo'\nB=3", { A: 'one\n\ntwo', B: '3' }],
  ['A=1\r\nB=2\r\n', { A: '1', B: '2' }],
  ['A=${B}$C', { A: '${B}$C' }],
  ['A=x=y', { A: 'x=y' }],
  ['A=1\nA=2', { A: '2' }],
])('%j', (text, expected) => {
  const { entries, problems } = parseDotenv(text);
  expect(problems).toEqual([]);
  expect(Object.fromEntries(entries.map(({ name, value }) => [name, value]))).toEqual(expected);
});

test.each([
  ['A=1\n1B=2', 2, 'expected NAME=VALUE'],
  ['A B', 1, 'expected NAME=VALUE'],
  ['A=1\n\n= x', 3, 'expected NAME=VALUE'],
  ['A="x\nB=2', 1, 'the closing quote is missing, or something follows it'],
  ["A='x' y", 1, 'the closing quote is missing, or something follows it'],
  ['A="x\ny"\nB C', 3, 'expected NAME=VALUE'],
])('%j has a problem on line %i', (text, line, message) => {
  expect(parseDotenv(text).problems).toEqual([{ line, message }]);
});

test.each<[string, Readonly<Record<string, string | undefined>>]>([
  ['A=pass#word', { A: 'pass#word' }],
  ['A="a \\"b\\""', { A: 'a "b"' }],
  ['A= \n\nB=2', { A: '', B: '2' }],
  ['A\nB=2', { A: undefined, B: '2' }],
])('util.parseEnv loses a value of %j', (text, expected) => {
  expect(Object.fromEntries(parseDotenv(text).entries.map(({ name, value }) => [name, value]))).toStrictEqual(expected);
  expect({ ...parseEnv(text) }).not.toStrictEqual(expected);
});

test('hostile files are parsed quickly', () => {
  expect(parseDotenv(`A=${' '.repeat(500_000)}x`).entries).toHaveLength(1);
  expect(parseDotenv(`A="${'\\"'.repeat(400_000)}`).problems).toHaveLength(1);
  expect(parseDotenv('A="\n'.repeat(100_000)).entries.length).toBeGreaterThan(0);
});
