import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { needs } from '../../../test/support/needs.ts';
import { shellMachine, shells } from '../../../test/support/shell-machine.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { TextReader } from './text-reader.ts';

/** The child processes that a process has waited for, as the page faults of all of them: field 11 of proc(5). */
const faultsOfChildren = (stat: string | undefined): string | undefined => stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[8];

for (const { shell, tools } of shells)
  needs(tools, () => {
    test(`${shell.join(' ')}: files are read exactly, over one session and without a process`, async () => {
      await withTempHome(async (dir) => {
        const machine = shellMachine(shell);
        // The time stands still: no answer is late, however slow this computer is.
        const reader = new TextReader(machine, new FakeClock());
        const texts = ['one\n', 'no end', ' \\n "$HOME" \t', "\n\n'", 'ü\r\n%s', '.\n=\n!\n'];
        for (const [index, text] of texts.entries()) writeFileSync(join(dir, `${index}`), text);
        expect(await Promise.all(texts.map((_, index) => reader.read(join(dir, `${index}`))))).toEqual(texts);
        const others = ['absent', '.', 'absent/file', '0\n1'].map((name) => reader.read(join(dir, name)));
        expect(await Promise.all(others)).toEqual([undefined, undefined, undefined, undefined]);
        expect(faultsOfChildren(await reader.read('/proc/self/stat'))).toBe('0');
        expect(machine.requests.length).toBe(1);
        machine.cut();
      });
    });
  });

test('an idle reader ends its session, and the next read opens another', async () => {
  const clock = new FakeClock();
  const machine = shellMachine(['sh']);
  const reader = new TextReader(machine, clock);
  const pidOf = async (): Promise<string | undefined> => (await reader.read('/proc/self/stat'))?.split(' ')[0];
  const first = await pidOf();
  await clock.advance(11_000);
  expect(await pidOf()).toBe(first);
  await clock.advance(12_000);
  const second = await pidOf();
  expect(second).not.toBe(first);
  await waitFor('the first shell to end', async () => (await reader.read(`/proc/${first}/stat`)) === undefined);
  expect(machine.requests.length).toBe(2);
  machine.cut();
});

test('after a broken session, reads end at once and open none for 30 s', async () => {
  const clock = new FakeClock();
  const machine = shellMachine(['sh']);
  const reader = new TextReader(machine, clock);
  expect(await reader.read('/proc/self/stat')).toBeDefined();
  machine.cut();
  await waitFor('the end of the session', async () => (await reader.read('/proc/self/stat')) === undefined);
  expect(await reader.read('/proc/self/stat')).toBeUndefined();
  expect(machine.requests.length).toBe(1);
  await clock.advance(30_000);
  expect(await reader.read('/proc/self/stat')).toBeDefined();
  machine.cut();
});

test('a machine that does not answer within 5 s is read in another way', async () => {
  const clock = new FakeClock();
  const machine = shellMachine(['sh', '-c', 'cat > /dev/null']);
  const reader = new TextReader(machine, clock);
  const read = reader.read('/proc/self/stat');
  await waitFor('the question', () => machine.requests.length === 1);
  await clock.advance(5_000);
  expect(await read).toBeUndefined();
  expect(machine.requests[0]?.signal?.aborted).toBe(true);
});
