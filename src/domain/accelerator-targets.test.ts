import { expect, test } from 'vitest';
import { smallestTarget, targetOf } from './accelerator-targets.ts';

const targets = { 'A100-80GB': 10, l4: 2, 'L4:4': 7, RTX_4090: 3, 'H100:8': 80 };

test.each([
  ['its name', 'A100-80GB', 1, 10],
  ['its name in another case', 'L4', 1, 2],
  ['other separators', 'rtx 4090', 2, 3],
  ['its maker before it', 'NVIDIA L4', 2, 2],
  ['its count, before the name alone', 'L4', 4, 7],
  ['a count that has no entry: the name alone', 'L4', 8, 2],
  ['a count that has no entry, where there is no name alone', 'H100', 4, undefined],
  ['a name that is the beginning of another', 'A100', 1, undefined],
])('a machine is found by %s', (_about, name, count, expected) => {
  expect(targetOf(targets, { name, count })).toBe(expected);
});

test('a machine without accelerators has no entry; the smallest is what others count for', () => {
  expect(targetOf(targets, undefined)).toBeUndefined();
  expect(smallestTarget(targets)).toBe(2);
});
