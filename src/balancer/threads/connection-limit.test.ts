import { expect, test } from 'vitest';
import { fileLimits } from './connection-limit.ts';

test('clients and replicas each get half of the remaining files', () => {
  expect(fileLimits(null, 20_000, 1)).toEqual({ files: 19_840, connections: 9_920 });
  expect(fileLimits(null, 20_000, 4)).toEqual({ files: 19_552, connections: 9_776 });
});

test('a configured limit holds while files suffice, and one connection is always allowed', () => {
  const limits = [fileLimits(100, 20_000, 1), fileLimits(50_000, 1_024, 1), fileLimits(null, 64, 1)];
  expect(limits.map(({ connections }) => connections)).toEqual([100, 432, 1]);
});
