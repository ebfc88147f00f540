import { expect, test } from 'vitest';
import { smallestTarget, targetOf } from './replica-capacity.ts';

const targets = { 'A100-80GB': 10, l4: 2, 'L4:4': 7, RTX_4090: 3, 'H100:8': 80 };

test.each([
  ['its name', 'A100-80GB', 1, 10],
  ['its name in another case', 'L4', 1, 2],
  ['other separators', 'rtx 4090', 2, 3],
  ['its maker before it', 'NVIDIA L4', 2, 2],
  ['its name with the count before the name alone', 'L4', 4, 7],
  ['its name alone when the count has no entry', 'L4', 8, 2],
  ['no entry when only other counts have one', 'H100', 4, undefined],
  ['no entry when its name begins another', 'A100', 1, undefined],
])('targetOf finds an entry by %s', (_about, name, count, expected) => {
  expect(targetOf(targets, { name, count })).toBe(expected);
});

test('a machine without accelerators has no entry, and others use the smallest target', () => {
  expect(targetOf(targets, undefined)).toBeUndefined();
  expect(smallestTarget(targets)).toBe(2);
});
