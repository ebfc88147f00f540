import { expect, test } from 'vitest';
import { cpuWaitMs } from './cpu-wait.ts';

test('a process has waited for some time, never a negative one, and one that is gone for none', () => {
  expect(cpuWaitMs(process.pid)).toBeGreaterThanOrEqual(0);
  expect(cpuWaitMs(2 ** 30)).toBe(0);
});
