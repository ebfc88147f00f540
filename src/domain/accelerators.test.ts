import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  acceleratorManufacturer,
  acceleratorMemoryGb,
  acceleratorNames,
  canonicalAccelerator,
  isSameAccelerator,
  suggestAccelerator,
} from './accelerators.ts';

test.for([
  ['a100-80gb', 'A100-80GB'],
  ['A100-80GB', 'A100-80GB'],
  ['a100_80gb', 'A100-80GB'],
  ['NVIDIA A100-SXM4-80GB', 'A100-80GB'],
  ['A100-40GB', 'A100'],
  ['RTX_4090', 'RTX4090'],
  ['RTX4090', 'RTX4090'],
  ['NVIDIA GeForce RTX 4090', 'RTX4090'],
  ['l4', 'L4'],
  ['tesla-t4', 'T4'],
  ['Tesla_T4', 'T4'],
  ['t4G', 'T4g'],
  ['NVIDIA H100 80GB HBM3', 'H100'],
  ['Tesla V100-SXM2-32GB', 'V100-32GB'],
  ['RTXA6000', 'A6000'],
  ['NVIDIA RTX A6000', 'A6000'],
  ['RTX6000Ada', 'RTX6000-Ada'],
  ['radeon pro v520', 'Radeon Pro V520'],
  ['Gaudi HL-205', 'Gaudi HL-205'],
  ['tpu-v5e', 'tpu-v5litepod'],
])('%s is %s', ([written, name]) => {
  expect(canonicalAccelerator(written ?? '')).toBe(name);
});

test('a name close to another name is not that name', () => {
  expect(['L40', 'L40S', 'L4'].map(canonicalAccelerator)).toEqual(['L40', 'L40S', 'L4']);
  expect(['A100-8', 'H10', '', '---', 'T4x'].map(canonicalAccelerator)).toEqual([undefined, undefined, undefined, undefined, undefined]);
});

test('a mistyped name gets a suggestion, a known one gets none', () => {
  expect(suggestAccelerator('H1000')).toBe('H100');
  expect(suggestAccelerator('A100-90GB')).toBe('A100-80GB');
  expect(suggestAccelerator('h100')).toBeUndefined();
  expect(suggestAccelerator('something else altogether')).toBeUndefined();
});

test('any name of an accelerator gives its memory and its maker', () => {
  expect(acceleratorMemoryGb('nvidia-l4')).toBe(24);
  expect(acceleratorMemoryGb('A100-80GB')).toBe(80);
  expect(acceleratorMemoryGb('tpu-v4')).toBeUndefined();
  expect(acceleratorMemoryGb('Q9')).toBeUndefined();
  expect([acceleratorManufacturer('mi300x'), acceleratorManufacturer('t4'), acceleratorManufacturer('Q9')]).toEqual([
    'AMD',
    'NVIDIA',
    undefined,
  ]);
});

test('every canonical name maps to itself, in any case and with any separators', () => {
  const name = fc.constantFrom(...acceleratorNames);
  fc.assert(
    fc.property(name, fc.constantFrom('-', '_', ' '), fc.boolean(), (known, joint, upper) => {
      const joined = known.replaceAll(/[-\s]/g, joint);
      expect(canonicalAccelerator(upper ? joined.toUpperCase() : joined.toLowerCase())).toBe(known);
    }),
  );
});

test('unknown names are equal when their plain text is equal', () => {
  expect(isSameAccelerator('MI_999', 'mi-999')).toBe(true);
  expect(isSameAccelerator('MI999', 'MI998')).toBe(false);
  expect(isSameAccelerator('A100-SXM4-80GB', 'a100-80gb')).toBe(true);
});
