import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { fillDisk, withSmallDisk } from '../../../test/support/small-disk.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock, type Clock } from '../../shared/clock.ts';
import { homePaths, type HomePaths } from '../../shared/paths.ts';
import { ensureController } from './daemon.ts';

/** The first process stays, and later ones end. It describes itself on the socket. */
const goodDaemon = `
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
const home = process.env['SVC_HOME'];
try { mkdirSync(join(home, 'lock')); } catch { process.exit(0); }
console.log('the controller is ready');
createServer((socket) => socket.end(JSON.stringify({ pid: process.pid, cwd: process.cwd() }))).listen(join(home, 'run/controller.sock'));
`;

interface Health {
  readonly pid: number;
  readonly cwd: string;
}

function ask(paths: HomePaths): Promise<Health | undefined> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(paths.controllerSocket);
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('end', () => resolve(JSON.parse(text)));
    socket.on('error', () => resolve(undefined));
  });
}

/** Starts controllers from a script, and ends those that still run. */
async function withDaemon(
  script: string,
  use: (paths: HomePaths, ensure: (clock?: Clock) => Promise<Health>) => Promise<void>,
): Promise<void> {
  await withTempHome(async (root) => {
    const entry = join(root, 'daemon.ts');
    writeFileSync(entry, script);
    const paths = homePaths(join(root, 'home'), process.getuid?.() ?? 0);
    const signal = new AbortController().signal;
    try {
      await use(paths, (clock = systemClock) => ensureController(paths, { clock, signal, entry, probe: () => ask(paths) }));
    } finally {
      await killProcessesOf(root);
    }
  });
}

/** A clock that jumps once, at the first sleep at which `when` holds. A started process has its real time until then. */
function jumpingClock(jumpMs: number, when = (): boolean => true): Clock {
  let aheadMs = 0;
  return {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + aheadMs,
    sleep: (ms, signal) => {
      if (when()) aheadMs = jumpMs;
      return systemClock.sleep(ms, signal);
    },
  };
}

/** Session id: field 6 of /proc/PID/stat, proc(5). */
const sessionOf = (pid: number): string | undefined => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[3];

test('a controller starts in its own session; the next command finds it', async () => {
  await withDaemon(goodDaemon, async (paths, ensure) => {
    const first = await ensure();
    expect(first.cwd).toBe(paths.home);
    expect(sessionOf(first.pid)).toBe(String(first.pid));
    expect(readFileSync(paths.controllerLog, 'utf8')).toBe('the controller is ready\n');
    expect(await ensure()).toEqual(first);
  });
});

test('concurrent commands all connect to the same controller', async () => {
  await withDaemon(goodDaemon, async (paths, ensure) => {
    const found = await Promise.all([ensure(), ensure(), ensure()]);
    expect(new Set(found.map(({ pid }) => pid)).size).toBe(1);
    expect(await ask(paths)).toEqual(found[0]);
  });
});

test('when the remaining controller ends before it answers, another one is started', async () => {
  // The first process exits in favour of another one, which was killed at that moment.
  const script = `
    import { existsSync as isThere, writeFileSync } from 'node:fs';
    const mark = process.env['SVC_HOME'] + '/has-left';
    if (!isThere(mark)) { writeFileSync(mark, ''); process.exit(0); }
    ${goodDaemon}`;
  await withDaemon(script, async (paths, ensure) => {
    expect(await ensure()).toEqual(await ask(paths));
  });
});

test("a controller that ends at once is an error with this start's log", async () => {
  await withDaemon("console.log('first line'); console.error('cannot open the database'); process.exit(3);", async (paths, ensure) => {
    mkdirSync(paths.home, { mode: 0o700 });
    writeFileSync(paths.controllerLog, 'from another time\n');
    const error = await ensure().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'SVC_CONTROLLER_START',
      message: `The controller could not be started: it ended with exit code 3. Its log is ${paths.controllerLog}\nfirst line\ncannot open the database`,
    });
  });
});

test('the error recorded by the controller is thrown with code, problems and hint', async () => {
  const problem = { message: 'unknown field', file: '/c.yaml', line: 1, column: 2, excerpt: '1 | x' };
  const reply = {
    error: { code: 'SVC_INVALID_CONFIG', message: 'The configuration has a problem.', hint: 'Correct it.', problems: [problem] },
  };
  const script = `
    import { writeFileSync } from 'node:fs';
    writeFileSync(process.env['SVC_HOME'] + '/controller-start-error.json', ${JSON.stringify(JSON.stringify(reply))});
    process.exit(2);`;
  await withDaemon(script, async (_, ensure) => {
    await expect(ensure()).rejects.toMatchObject({ ...reply.error, problems: [problem] });
  });
  await withDaemon('process.exit(2);', async (paths, ensure) => {
    mkdirSync(paths.home, { mode: 0o700 });
    writeFileSync(paths.startError, JSON.stringify(reply));
    await expect(ensure()).rejects.toMatchObject({ code: 'SVC_CONTROLLER_START' });
  });
});

test('a service manager starts the controller; an error that this records is thrown at once', async () => {
  await withDaemon('process.exit(9);', async (paths) => {
    const reply = { error: { code: 'SVC_INVALID_CONFIG', message: 'The configuration has a problem.', hint: 'Correct it.', problems: [] } };
    const deps = { clock: systemClock, signal: new AbortController().signal, entry: '/nothing', probe: () => ask(paths) };
    const fails = async (): Promise<boolean> => {
      writeFileSync(paths.startError, JSON.stringify(reply));
      return true;
    };
    await expect(ensureController(paths, { ...deps, startByManager: fails })).rejects.toMatchObject(reply.error);
  });
  await withDaemon(goodDaemon, async (paths, ensure) => {
    const deps = { clock: systemClock, signal: new AbortController().signal, entry: '/nothing', probe: () => ask(paths) };
    const starts = async (): Promise<boolean> => (await ensure()).pid > 0;
    expect((await ensureController(paths, { ...deps, startByManager: starts })).cwd).toBe(paths.home);
  });
});

test("a standby controller's error is thrown, even when it is from an earlier command", async () => {
  const reply = { error: { code: 'SVC_NOT_LEADER', message: 'The controller here stands by.', hint: 'Give the command there.' } };
  const text = JSON.stringify(JSON.stringify(reply));
  const script = `
    import { existsSync, writeFileSync } from 'node:fs';
    const file = process.env['SVC_HOME'] + '/controller-start-error.json';
    if (!existsSync(file)) {
      writeFileSync(file, ${text});
      setInterval(() => {}, 1000);
    }`;
  await withDaemon(script, async (paths, ensure) => {
    for (let command = 0; command < 2; command += 1) {
      const clock = jumpingClock(20_000, () => existsSync(paths.startError));
      await expect(ensure(clock)).rejects.toMatchObject(reply.error);
    }
  });
});

test('for a bug, the error has the message without the stack', async () => {
  await withDaemon("throw new TypeError('x is undefined');", async (_, ensure) => {
    const error = await ensure().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining('TypeError: x is undefined') });
    expect(error).not.toMatchObject({ message: expect.stringMatching(/\n +at /) });
  });
});

test('a controller that never answers is an error after 60 s', async () => {
  await withDaemon('setInterval(() => {}, 1000);', async (_, ensure) => {
    const fast: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() * 80 };
    await expect(ensure(fast)).rejects.toMatchObject({
      code: 'SVC_CONTROLLER_START',
      message: expect.stringContaining('did not answer within 60 s'),
    });
  });
});

test('a command starts the controller when the installed unit brings none that answers', async () => {
  await withDaemon(goodDaemon, async (paths) => {
    const said: string[] = [];
    // The wait for the unit is over at once, and the process that starts then has 25 s.
    const clock = jumpingClock(35_000);
    const deps = { clock, signal: new AbortController().signal, entry: join(paths.home, '../daemon.ts'), probe: () => ask(paths) };
    const health = await ensureController(paths, { ...deps, startByManager: async () => true, say: (text) => said.push(text) });
    expect(health.cwd).toBe(paths.home);
    expect(said).toEqual([expect.stringContaining('The installed unit starts no controller')]);
  });
});

test('an unusable home is refused before a controller is started', async () => {
  await withDaemon(goodDaemon, async (paths, ensure) => {
    mkdirSync(paths.home);
    chmodSync(paths.home, 0o777);
    await expect(ensure()).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE' });
  });
});

test.skipIf(process.getuid?.() !== 0)('the hint of a full disk quotes the home for the shell', async () => {
  await withTempHome(async (root) => {
    const entry = join(root, 'daemon.ts');
    writeFileSync(entry, 'process.exit(3);');
    const home = join(root, 'a home');
    mkdirSync(home);
    await withSmallDisk(home, 'size=1m', async () => {
      fillDisk(join(home, 'junk'));
      const deps = { clock: systemClock, signal: new AbortController().signal, entry, probe: () => Promise.resolve(undefined) };
      await expect(ensureController(homePaths(home, 0), deps)).rejects.toMatchObject({
        code: 'SVC_NO_SPACE',
        hint: expect.stringContaining(`(df -h '${home}'; df -i '${home}')`),
      });
    });
  });
});
