import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { groupOf } from '../../../test/support/leaks.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { bootCommand, repeatingBootCommand, sessionScript, type SessionCommand } from './session-script.ts';

const token = 'svc-0123';

/**
 * Runs the command as an sshd does, in the user's shell; this test uses a POSIX shell. The input ends, which ends the
 * session.
 */
function run(command: Omit<SessionCommand, 'input'>, input = Buffer.alloc(0)): { readonly stdout: string; readonly stderr: string } {
  const script = sessionScript({ ...command, input: { kind: 'stream' } }, token);
  const { stdout, stderr } = spawnSync('sh', ['-c', bootCommand], { input: Buffer.concat([Buffer.from(script), input]), encoding: 'utf8' });
  return { stdout, stderr };
}

test('a command receives exactly its arguments, variables and input, whatever bytes they contain', () => {
  const text = fc.string({ unit: 'binary', maxLength: 30 }).filter((one) => !one.includes('\0') && one.isWellFormed());
  fc.assert(
    fc.property(fc.array(text, { maxLength: 4 }), text, text, (words, value, input) => {
      const argv = ['sh', '-c', 'printf "<%s>" "$@" "$VALUE"; cat', 'sh', ...words];
      const { stdout } = run({ argv, env: { VALUE: value } }, Buffer.from(input));
      expect(stdout).toBe(`${token}+\n${[...words, value].map((word) => `<${word}>`).join('')}${input}${token}=0;\n`);
    }),
    { numRuns: 25 },
  );
});

test('the exit code follows the last byte on both outputs', () => {
  const { stdout, stderr } = run({ argv: ['sh', '-c', 'printf out; printf err >&2; exit 255'], env: {} });
  expect([stdout, stderr]).toEqual([`${token}+\nout${token}=255;\n`, `${token}+\nerr${token}=255;\n`]);
});

test.for([0, 3])('a session ends with its command on an open connection, with %i input bytes', async (bytes) => {
  const script = sessionScript({ argv: ['sh', '-c', 'cat; exit 3'], env: {}, input: { kind: 'bytes', bytes } }, token);
  // A process group of its own, as for each session of an sshd.
  const shell = spawn('sh', ['-c', bootCommand], { detached: true, stdio: 'pipe' });
  try {
    shell.stdin.write(script + 'abc'.slice(0, bytes));
    const [said] = await Promise.all([readAll(shell.stdout), once(shell, 'exit')]);
    expect(said).toBe(`${token}+\n${'abc'.slice(0, bytes)}${token}=3;\n`);
    await waitFor('its processes to end', () => groupOf(shell.pid).length === 0, { describe: () => groupOf(shell.pid) });
  } finally {
    shell.stdin.end();
  }
});

test('a truncated script is not run', () => {
  const script = sessionScript({ argv: ['touch', '/nonexistent/x'], env: {}, input: { kind: 'stream' } }, token);
  const { stdout, status } = spawnSync('sh', ['-c', bootCommand], { input: script.slice(0, -3), encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 1]);
});

test('the boot command is one line without characters that any shell treats specially', () => {
  expect(bootCommand).toMatch(/^exec \/bin\/sh -c '[^'!\n]*'$/);
  expect(bootCommand).not.toContain('\\\\');
});

test('an invalid variable name is rejected', () => {
  expect(() => sessionScript({ argv: ['true'], env: { 'a-b': '' }, input: { kind: 'stream' } }, token)).toThrow("cannot be called 'a-b'");
});

test('a repeating shell keeps inputs, variables and marks of its scripts apart', () => {
  const commands: readonly SessionCommand[] = [
    { argv: ['sh', '-c', 'cat; exit 3'], env: {}, input: { kind: 'text', text: "it's\n\\n $HOME %s" } },
    { argv: ['sh', '-c', 'printf "<%s>" "$ONE"; cat'], env: { ONE: '1' }, input: { kind: 'text', text: '' } },
    { argv: ['sh', '-c', 'printf "<%s>" "$ONE"'], env: {}, cwd: '/nonexistent', input: { kind: 'text', text: '' } },
    { argv: ['sh', '-c', 'kill -9 $$'], env: {}, input: { kind: 'text', text: '' } },
  ];
  const [file = '', ...args] = repeatingBootCommand;
  const input = commands.map((command, index) => sessionScript(command, `t${index}`)).join('');
  const { stdout, status } = spawnSync(file, args, { input, encoding: 'utf8' });
  expect(stdout).toBe("t0+\nit's\n\\n $HOME %st0=3;\nt1+\n<1>t1=0;\nt2+\nt2=127;\nt3+\nt3=137;\n");
  expect(status).toBe(0);
});
