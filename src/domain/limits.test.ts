import { expect, test } from 'vitest';
import { serviceLimit } from './limits.ts';

test.each([
  [4, 16, 16],
  [2, 23.4, 8],
  [8, 7.9, 7],
  [1, 0.5, 1],
])('%d vCPUs and %d GiB run %d services', (vcpus, memoryGib, limit) => {
  expect(serviceLimit(vcpus, memoryGib)).toBe(limit);
});
