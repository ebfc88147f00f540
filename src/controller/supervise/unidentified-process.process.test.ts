import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock, type Clock } from '../../shared/clock.ts';
import type * as processIdentity from '../../shared/system/process-identity.ts';
import { Supervisor } from './supervisor.ts';

// As where /proc cannot be read.
vi.mock('../../shared/system/process-identity.ts', async (original) => ({
  ...(await original<typeof processIdentity>()),
  identifyProcess: () => undefined,
}));

const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`);

test('a started process that can be neither identified nor asked is killed at a deadline', async () => {
  await withTempHome(async (home) => {
    const program = join(home, 'silent.ts');
    const pids = join(home, 'pid');
    writeFileSync(
      program,
      `import { writeFileSync } from 'node:fs'; writeFileSync(process.argv[2], String(process.pid)); setInterval(() => {}, 1000);`,
    );
    let runs = true;
    // The process gets all the time that it needs to start. Then the ten minutes until its deadline are over.
    const clock: Clock = {
      ...systemClock,
      after(_, fire) {
        const cancel = systemClock.every(20, () => {
          if (runs) return;
          cancel();
          fire();
        });
        return cancel;
      },
    };
    const what = {
      name: 'program',
      argv: [program, pids],
      socketPath: join(home, 'p.sock'),
      logFile: join(home, 'program.log'),
      known: null,
      desired: { version: '1' },
      renewal: 'restart',
    } as const;
    const supervisor = new Supervisor(what, {
      clock,
      log: pino({ level: 'silent' }),
      shouldRun: () => Promise.resolve(runs),
      onUp: () => undefined,
      onDown: () => undefined,
    });
    try {
      await waitFor('the process', () => existsSync(pids) && readFileSync(pids, 'utf8') !== '');
      const pid = Number(readFileSync(pids, 'utf8'));
      runs = false;
      expect(await waitFor('its end', () => !isRunning(pid))).toBe(true);
    } finally {
      await supervisor.release();
    }
  });
});
