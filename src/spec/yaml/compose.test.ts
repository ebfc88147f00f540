import { expect, test } from 'vitest';
import { codeOf, parseText, problemsOf } from '../../../test/support/task-text.ts';
import { SourceText } from '../source-text.ts';
import { composeYaml } from './compose.ts';
import { toValue } from './node.ts';

const valueOf = (text: string): unknown => {
  const { root, faults } = composeYaml(new SourceText(text, 'x.yaml'));
  return root === undefined ? faults : toValue(root);
};

test.each([
  ['an anchor and an alias', 'a: &x [1, 2]\nb: *x\n', { a: [1, 2], b: [1, 2] }],
  ['an alias of the last anchor of its name', 'a: &x 1\nb: *x\nc: &x 2\nd: *x\n', { a: 1, b: 1, c: 2, d: 2 }],
  ['a merge key, over which own keys go', 'a: &x {k: 1, l: 2}\nb: {k: 3, <<: *x}\n', { a: { k: 1, l: 2 }, b: { l: 2, k: 3 } }],
  [
    'several merged maps, of which the first wins',
    'a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y]}\n',
    { a: { k: 1 }, b: { k: 2, l: 2 }, c: { k: 1, l: 2 } },
  ],
  ['a quoted merge key, which is a key', 'a: {"<<": 1}\n', { a: { '<<': 1 } }],
  ['the last of two equal keys', 'a: 1\na: 2\n', { a: 2 }],
  ['keys that are not text', '1: a\nyes: b\n~: c\n', { '1': 'a', yes: 'b', '~': 'c' }],
  ['the set form', 'a: {L4:8, A10g:8}\n', { a: { 'L4:8': null, 'A10g:8': null } }],
  ['core tags', 'a: !!str 1\nb: !!int "2"\nc: ! 3\nd: !!float 1.5\n', { a: '1', b: 2, c: '3', d: 1.5 }],
  ['a YAML directive and a document start', '%YAML 1.1\n---\na: on\n', { a: true }],
  ['block text', 'a: |\n  x\n  y\nb: >-\n  x\n  y\n', { a: 'x\ny\n', b: 'x y' }],
])('%s', (_about, text, expected) => {
  expect(valueOf(text)).toEqual(expected);
});

test('keys named like Object.prototype members stay keys and change no object', () => {
  const value = valueOf('constructor: {prototype: {polluted: 1}}\ntoString: 1\nhasOwnProperty: 2\n');
  expect(Object.keys(value ?? {})).toEqual(['constructor', 'toString', 'hasOwnProperty']);
  expect(problemsOf('constructor: 1\n')[0]).toContain("unknown field 'constructor'");
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(problemsOf('service: {__proto__: {replicas: 1}}\n')).toEqual(["1:11 the key '__proto__' is not allowed"]);
  expect(problemsOf('a: &a {__proto__: {x: 1}}\nservice: {<<: *a}\n')).toEqual(["1:8 the key '__proto__' is not allowed"]);
  expect(parseText('envs: {constructor: a, valueOf: b}\n').envs).toEqual({ constructor: 'a', valueOf: 'b' });
});

test('aliases that would expand to a billion values are rejected', () => {
  const lines = [
    'a: &a [x, x, x, x, x, x, x, x, x, x]',
    ...'bcdefghi'
      .split('')
      .map((name, index) => `${name}: &${name} [${Array.from({ length: 10 }, () => `*${'abcdefgh'[index]}`).join(', ')}]`),
  ];
  expect(problemsOf(lines.join('\n'))).toEqual(['1:1 the document holds too many values once its aliases are written out']);
});

test.for([
  ['of texts in a list', (text: string) => `a: &a "${text}"\nenvs: {B: [${'*a, '.repeat(20)}*a]}`],
  [
    'of texts in a map',
    (text: string) => `envs:\n  A0: &a "${text}"\n${Array.from({ length: 20 }, (_, index) => `  A${index + 1}: *a`).join('\n')}`,
  ],
  ['of maps with a large key', (text: string) => `a: &a {"${text}": 1}\nenvs: {B: [${'*a, '.repeat(20)}*a]}`],
  ['that are merged', (text: string) => `a: &a {"${text}": 1}\nenvs: {B: [${'{<<: *a}, '.repeat(20)}{}]}`],
] as const)('aliases %s that would expand to megabytes are rejected', ([, sourceWith]) => {
  const faultsOf = (length: number): readonly string[] =>
    composeYaml(new SourceText(sourceWith('x'.repeat(length)), 'f')).faults.map(({ message }) => message);
  expect(faultsOf(60_000)).toEqual(['the document is larger than 1 MiB once its aliases are written out']);
  expect(faultsOf(40_000)).toEqual([]);
});

test('merge keys that would copy millions of entries are rejected', () => {
  const lines = Array.from({ length: 300 }, (_, index) => `x${index + 1}: &x${index + 1} {<<: *x${index}, k${index}: 1}`);
  expect(problemsOf(['x0: &x0 {k: 1}', ...lines].join('\n'))).toEqual([expect.stringContaining('once its merge keys are written out')]);
});

test('nesting through aliases is rejected beyond the depth limit', () => {
  const lines = Array.from({ length: 150 }, (_, index) => `a${index + 1}: &a${index + 1} [*a${index}]`);
  expect(problemsOf(['a0: &a0 [1]', ...lines].join('\n'))).toEqual(['1:1 the document is nested more than 100 levels deep']);
});

test.each([
  ['brackets', '['.repeat(100_000)],
  ['braces', '{a: '.repeat(100_000)],
  ['dashes', '- '.repeat(100_000)],
  ['question marks', '? '.repeat(100_000)],
  ['indentation', Array.from({ length: 1_000 }, (_, index) => `${' '.repeat(index)}a:`).join('\n')],
])('deep nesting by %s is rejected without a stack overflow', (_about, text) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining('the document is nested more than 100 levels deep')]);
});

test.each([
  ['items', `a: [${'1,'.repeat(400_000)}1]`],
  ['lines', Array.from({ length: 60_000 }, (_, index) => `k${index}: 1`).join('\n')],
  ['documents', '---\n'.repeat(200_000)],
  ['quotes', '"'.repeat(1_000_000)],
])('a file of very many %s is rejected before it is fully read', (_about, text) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining('the document has more parts than any task file needs')]);
});

test('long text is accepted', () => {
  expect(codeOf(`run: |\n${'  echo hello\n'.repeat(60_000)}`)).toBeUndefined();
  expect(codeOf(`run: "${'\\n'.repeat(500_000)}"`)).toBeUndefined();
});
