import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import {
  bootId,
  identifyProcess,
  isAlive,
  isProcessIdentity,
  parseStartTicks,
  pidSpace,
  sameProcess,
  signalProcess,
  cpuWaitMs,
} from './process-identity.ts';

test('a process is identified by pid, start, boot and namespace until it ends', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const identity = identifyProcess(child.pid ?? 0);
  if (identity === undefined) throw new Error('it is not there');
  expect(isProcessIdentity(JSON.parse(JSON.stringify(identity)))).toBe(true);
  expect(identity).toMatchObject({ bootId: bootId(), space: pidSpace() });
  expect(isAlive(identity)).toBe(true);
  expect(isAlive({ ...identity, startTicks: identity.startTicks + 1 })).toBe(false);

  const ended = once(child, 'exit');
  expect(signalProcess(identity, 'SIGKILL')).toBe(true);
  await ended;
  expect(isAlive(identity)).toBe(false);
});

test('a process of another machine or container never matches and gets no signal', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  try {
    const own = identifyProcess(child.pid ?? 0);
    if (own === undefined) throw new Error('it is not there');
    for (const foreign of [
      { ...own, space: 'pid:[1]' },
      { ...own, bootId: 'another' },
    ]) {
      expect(sameProcess(own, foreign)).toBe(false);
      expect(isAlive(foreign)).toBe(false);
      expect(signalProcess(foreign, 'SIGKILL')).toBe(false);
    }
    expect(isAlive(own)).toBe(true);
  } finally {
    child.kill('SIGKILL');
  }
});

test('older records without a namespace still identify their processes', () => {
  const own = identifyProcess(process.pid);
  if (own === undefined) throw new Error('it is not there');
  const { pid, startTicks, bootId: boot } = own;
  expect(isAlive({ pid, startTicks, bootId: boot })).toBe(true);
  expect(sameProcess({ pid, startTicks, bootId: boot }, own)).toBe(true);
});

/** Text in the format of /proc/PID/stat. */
const statOf = (state: string, threads: number): string => `7 (a) b) ${state} ${'1 '.repeat(16)}${threads} 0 4711 0`;

test('a process with an ended main thread lives while another thread does', () => {
  expect([statOf('S', 1), statOf('Z', 3), statOf('Z', 1), statOf('X', 3)].map(parseStartTicks)).toEqual([4711, 4711, undefined, undefined]);
});

test('the CPU wait is positive for a running process, zero for an ended one', () => {
  expect(cpuWaitMs(process.pid)).toBeGreaterThanOrEqual(0);
  expect(cpuWaitMs(2 ** 30)).toBe(0);
});
