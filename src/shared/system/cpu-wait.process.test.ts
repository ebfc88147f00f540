import { expect, test } from 'vitest';
import { cpuWaitMs } from './cpu-wait.ts';

test('the CPU wait is positive for a running process, zero for an ended one', () => {
  expect(cpuWaitMs(process.pid)).toBeGreaterThanOrEqual(0);
  expect(cpuWaitMs(2 ** 30)).toBe(0);
});
