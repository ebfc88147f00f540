import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { powerOff } from './power-off.ts';

const path = process.env['PATH'];

afterEach(() => {
  process.env['PATH'] = path;
});

/**
 * Runs the power-off with only the shell, `id`, and the given scripts as commands: nothing can really power off this
 * machine.
 */
async function withCommands(uid: number, scripts: Readonly<Record<string, string>>) {
  const done: string[] = [];
  const errors: string[] = [];
  await withTempHome(async (home) => {
    const bin = join(home, 'bin');
    mkdirSync(bin);
    symlinkSync('/bin/sh', join(bin, 'sh'));
    const all = { id: `echo ${uid}`, ...scripts };
    for (const [name, body] of Object.entries(all)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${body.replaceAll('DONE', join(home, 'done'))}\n`, { mode: 0o755 });
    }
    process.env['PATH'] = bin;
    const log = { info: () => undefined, error: (_details: object, message: string) => void errors.push(message) };
    await powerOff({ clock: systemClock, log });
    if (existsSync(join(home, 'done'))) done.push(...readFileSync(join(home, 'done'), 'utf8').trim().split('\n'));
  });
  return { done, errors };
}

test('root powers off with the first command that works', async () => {
  const scripts = { systemctl: 'exit 1', shutdown: 'echo "shutdown $*" >> DONE', poweroff: 'echo poweroff >> DONE' };
  expect(await withCommands(0, scripts)).toEqual({ done: ['shutdown -h now'], errors: [] });
});

test('an ordinary user powers off through sudo without a password prompt', async () => {
  const scripts = { sudo: 'echo "sudo $*" >> DONE' };
  expect(await withCommands(1000, scripts)).toEqual({ done: ['sudo -n systemctl poweroff'], errors: [] });
});

test('without permission the machine stays on, and the log reports its continuing cost', async () => {
  const { done, errors } = await withCommands(1000, { sudo: 'exit 1' });
  expect(done).toEqual([]);
  expect(errors).toEqual([expect.stringContaining('cannot be switched off')]);
});
