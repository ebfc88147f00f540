import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { systemClock, type Clock } from '../../shared/clock.ts';
import { retireController } from './controller-process.ts';

/** A process that ends at a signal; with `stubborn` it ignores the signal. */
async function withProcess(stubborn: boolean, use: (pid: number, ended: Promise<unknown>) => Promise<void>): Promise<void> {
  const script = `process.on('SIGTERM', () => ${stubborn ? 'undefined' : 'process.exit(0)'}); setInterval(() => 0, 1_000); console.log('up');`;
  const child = spawn(process.execPath, ['--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  try {
    await once(child.stdout, 'data');
    await use(child.pid ?? 0, ended);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

const { signal } = new AbortController();

test('a controller that gets the signal ends', async () => {
  await withProcess(false, async (pid, ended) => {
    await retireController(pid, { clock: systemClock, signal });
    expect(await ended).toEqual([0, null]);
    await retireController(pid, { clock: systemClock, signal });
  });
});

test('a controller that does not end is an error with a hint', async () => {
  const hasty: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() * 100 };
  await withProcess(true, async (pid) => {
    await expect(retireController(pid, { clock: hasty, signal })).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_UNREACHABLE',
      hint: `Run: kill -9 ${pid}`,
    });
  });
});
