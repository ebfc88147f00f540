import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock, type Clock } from '../../shared/clock.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { NoAnswerError } from '../../api/client-exchange.ts';
import { SvcError } from '../../shared/errors.ts';
import { identifyProcess, isStopped } from '../../shared/system/process-identity.ts';
import { askOrKill, retireController } from './controller-process.ts';

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

/** Asks a recorded process. `answers`: from which call on it answers. */
async function ask(
  pid: number,
  answers: number,
  cause: Error = new NoAnswerError(),
): Promise<readonly [answer: string | undefined, calls: number]> {
  const calls: string[] = [];
  const answer = await withTempHome(async (home) => {
    const file = join(home, 'identity.json');
    writeFileSync(file, JSON.stringify(identifyProcess(pid)));
    return askOrKill(
      file,
      async () => {
        calls.push('health');
        if (calls.length < answers) throw new SvcError('SVC_CONTROLLER_UNREACHABLE', 'no answer', { cause });
        return 'health';
      },
      { clock: systemClock, signal },
    );
  });
  return [answer, calls.length];
}

test('a stopped controller is killed without a call', async () => {
  await withProcess(true, async (pid, ended) => {
    process.kill(pid, 'SIGSTOP');
    await waitFor('the process to be stopped', () => isStopped(pid));
    expect(await ask(pid, 1)).toEqual([undefined, 0]);
    expect(await ended).toEqual([null, 'SIGKILL']);
  });
});

test('a controller that hangs is killed after three calls; a slow one is not', async () => {
  await withProcess(true, async (pid, ended) => {
    expect(await ask(pid, 3)).toEqual(['health', 3]);
    await expect(ask(pid, 4, new Error('connect EAGAIN'))).rejects.toThrow('no answer');
    expect(await ask(pid, 4)).toEqual([undefined, 3]);
    expect(await ended).toEqual([null, 'SIGKILL']);
  });
});
