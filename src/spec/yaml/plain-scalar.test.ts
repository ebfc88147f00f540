import { expect, test } from 'vitest';
import { resolvePlain } from './plain-scalar.ts';

// Each row as PyYAML 6 reads it: python3 -c 'import yaml; print(repr(yaml.safe_load(text)))'
test.each<[string, string | number | boolean | null]>([
  ['', null],
  ['~', null],
  ['null', null],
  ['NULL', null],
  ['nULL', 'nULL'],
  ['yes', true],
  ['On', true],
  ['TRUE', true],
  ['no', false],
  ['OFF', false],
  ['y', 'y'],
  ['tRue', 'tRue'],
  ['0', 0],
  ['-0', -0],
  ['12', 12],
  ['+12', 12],
  ['-12', -12],
  ['1_000', 1000],
  ['010', 8],
  ['-010', -8],
  ['08', '08'],
  ['0o10', '0o10'],
  ['0x1F', 31],
  ['-0x10', -16],
  ['0b101', 5],
  ['0x_', '0x_'],
  ['1:30', 90],
  ['1:30:10', 5410],
  ['-1:30', -90],
  ['1:60', '1:60'],
  ['8080:80', '8080:80'],
  ['22:22', 1342],
  ['1.5', 1.5],
  ['1.', 1],
  ['.5', 0.5],
  ['-1.5', -1.5],
  ['1e3', '1e3'],
  ['1.0e3', '1.0e3'],
  ['1.0e+3', 1000],
  ['1_0.5', 10.5],
  ['1:30.5', 90.5],
  ['.inf', Number.POSITIVE_INFINITY],
  ['-.INF', Number.NEGATIVE_INFINITY],
  ['.nan', Number.NaN],
  ['.', '.'],
  ['-', '-'],
  ['4+', '4+'],
  ['1.2.3', '1.2.3'],
  ['2024-01-01', '2024-01-01'],
  ['hello', 'hello'],
  ['=', '='],
])('%s', (text, value) => {
  expect(resolvePlain(text)).toBe(value);
});

test('endless digits are text', () => {
  expect(resolvePlain('1'.repeat(100))).toBe('1'.repeat(100));
});
