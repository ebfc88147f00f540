import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../test/support/leaks.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const script = fileURLToPath(new URL('controller.sh', import.meta.url));

/**
 * Runs `use` with a folder whose controller is a shell script, with custom commands. The passed function runs
 * `controller.sh`. Afterwards all its processes are killed.
 */
async function withController(
  { controller, commands = {} }: { readonly controller: string; readonly commands?: Readonly<Record<string, string>> },
  use: (dir: string, run: (verb: string) => Promise<number>) => Promise<void>,
): Promise<void> {
  await withTempHome(async (dir) => {
    const bin = join(dir, 'bin');
    for (const folder of [bin, join(dir, 'home')]) mkdirSync(folder);
    writeFileSync(join(dir, 'settings'), '');
    for (const [name, text] of Object.entries({ ...commands, '../node': controller })) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    }
    const run = async (verb: string): Promise<number> => {
      const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
      const [code] = await once(spawn('sh', [script, verb, dir], { env, stdio: 'ignore' }), 'exit');
      return Number(code);
    };
    try {
      await use(dir, run);
    } finally {
      await killProcessesOf(dir);
    }
  });
}

test('a crashing controller can be stopped between two starts', async () => {
  const controller = 'echo started >> "$SVC_HOME/starts"; exit 1';
  // The delay between two starts, in whole seconds, lasts longer than the test.
  const commands = { sleep: 'case $1 in *.*) exec /bin/sleep "$1" ;; *) exec /bin/sleep 1000 ;; esac' };
  await withController({ controller, commands }, async (dir, run) => {
    expect(await run('start')).toBe(0);
    const file = join(dir, 'home', 'starts');
    const starts = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
    await waitFor('the first start', () => starts() !== '');
    expect(await run('stop')).toBe(0);
    expect(existsSync(join(dir, 'supervisor'))).toBe(false);
    expect(starts()).toBe('started\n');
  });
});

test('a controller that has just started receives SIGTERM', async () => {
  const controller = `trap 'echo told > "$SVC_HOME/told"; exit 0' TERM
echo begun > "$SVC_HOME/begun"
while :; do sleep 0.05; done`;
  await withController({ controller }, async (dir, run) => {
    const has = (file: string): boolean => existsSync(join(dir, 'home', file));
    expect(await run('start')).toBe(0);
    await waitFor('the supervisor', () => existsSync(join(dir, 'supervisor')), { everyMs: 1 });
    expect(await run('stop')).toBe(0);
    expect(has('told') || !has('begun')).toBe(true);
  });
});
