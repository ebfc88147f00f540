import { expect, test } from 'vitest';
import { runInProcess } from '../../test/support/cli-world.ts';
import { aServiceView } from '../../test/support/views.ts';
import { SvcError } from '../shared/errors.ts';
import { commands } from './command-table.ts';
import { otherWords } from './unknown-command.ts';

const groups = ['', 'serve', 'controller'];
const leaves = commands.filter(({ hidden }) => hidden !== true).map(({ path }) => path.join(' '));
const words = (line: string): readonly string[] => line.split(' ').filter((word) => word !== '');

test.for([...groups, ...leaves])('help of svc %s', async (line) => {
  const { code, stdout, stderr } = await runInProcess([...words(line), '--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatchSnapshot();
});

test.for(groups)('a bare svc %s prints help on standard error with exit code 2', async (line) => {
  const { code, stdout, stderr } = await runInProcess(words(line));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Commands:');
});

test.for(['--version', 'version', '-v', '-V'])('%s prints only the version', async (word) => {
  expect(await runInProcess([word])).toMatchObject({ code: 0, stdout: '1.2.3\n', stderr: '' });
});

test.for([
  ['help', '--help'],
  ['help serve', 'serve --help'],
  ['help serve up', 'serve up --help'],
] as const)('svc %s is equivalent to svc %s', async ([asked, usual]) => {
  expect(await runInProcess(words(asked))).toEqual(await runInProcess(words(usual)));
});

test.for<readonly [argv: readonly string[], message: string, hint: string]>([
  [['serv'], "Unknown command 'serv'.", "Did you mean 'serve'? Run: svc --help"],
  [['serve', 'upp'], "Unknown command 'upp'.", "Did you mean 'up'? Run: svc serve --help"],
  [['up', 'x.yaml'], "Unknown command 'up'.", 'Did you mean: svc serve up; all commands: svc --help'],
  [['events', 'chat', '--follow'], "Unknown command 'events'.", 'Did you mean: svc serve events; all commands: svc --help'],
  [['ps'], "Unknown command 'ps'.", 'Did you mean: svc status; all commands: svc --help'],
  [['delete', 'chat'], "Unknown command 'delete'.", 'Did you mean: svc serve down; all commands: svc --help'],
  [['serve', 'ls'], "Unknown command 'ls'.", 'Did you mean: svc serve status; all commands: svc serve --help'],
  [['serve', 'rm', 'chat'], "Unknown command 'rm'.", 'Did you mean: svc serve down; all commands: svc serve --help'],
  [['serve', 'stop'], "Unknown command 'stop'.", 'Did you mean: svc serve down; all commands: svc serve --help'],
  [['serve', 'check'], "Unknown command 'check'.", 'Did you mean: svc check; all commands: svc serve --help'],
  [['serve', 'frobnicate'], "Unknown command 'frobnicate'.", 'Run: svc serve --help'],
  [['toString'], "Unknown command 'toString'.", 'Run: svc --help'],
  [['serve', 'up', 'x.yaml', '--nmae', 'x'], "Unknown option '--nmae'.", "Did you mean '--name'? Run: svc serve up --help"],
  [['serve', 'up'], "Missing required argument 'FILE'.", 'Run: svc serve up --help'],
  [
    ['serve', 'up', 'a.yaml', 'b.yaml'],
    "Too many arguments for 'up'. Expected 1 argument but got 2: a.yaml, b.yaml.",
    'Run: svc serve up --help',
  ],
  [
    ['serve', 'logs', 'chat', '--tail', 'x'],
    "Option '--tail <N>' argument 'x' is invalid. It must be a whole number of at least 0.",
    'Run: svc serve logs --help',
  ],
  [
    ['serve', 'up', 'x.yaml', '--endpoint-port', '70000'],
    "Option '--endpoint-port <PORT>' argument '70000' is invalid. It must be a whole number from 1 to 65535.",
    'Run: svc serve up --help',
  ],
  [['exec', 'dev', 'a.yaml', 'b.yaml'], 'Too many words before `--`.', 'Run: svc exec --help'],
])('svc %s is refused with a message and a hint', async ([argv, message, hint]) => {
  expect(await runInProcess(argv)).toEqual({
    code: 2,
    stdout: '',
    stderr: `error: ${message}\nhint: ${hint}\ncode: SVC_USAGE\n`,
    calls: [],
  });
});

test.for(['serve upgrade', 'serve scale', 'apply', 'rollout'])('svc %s suggests svc serve update', async (line) => {
  const { code, stderr } = await runInProcess([...words(line), 'chat']);
  expect([code, stderr.includes('Did you mean: svc serve update;')]).toEqual([2, true]);
});

test('every alias from other tools leads to an existing command', () => {
  expect(Object.values(otherWords).filter((line) => !leaves.includes(line))).toEqual([]);
});

test('with --json every error is one JSON document on standard output', async () => {
  const { code, stdout, stderr } = await runInProcess(['serve', 'status', '--jsn', '--json']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    error: {
      code: 'SVC_USAGE',
      message: "Unknown option '--jsn'.",
      hint: "Did you mean '--json'? Run: svc serve status --help",
      problems: [],
    },
  });
});

test("a controller's error is shown completely and determines the exit code", async () => {
  const error = new SvcError('SVC_INVALID_TASK', 'The task file has a problem.', {
    problems: [
      {
        message: 'unknown field',
        file: '/project/x.yaml',
        line: 2,
        column: 3,
        excerpt: '2 |   replica: 2\n  |   ^',
        hint: 'Did you mean replicas?',
      },
    ],
  });
  const result = await runInProcess(['serve', 'status'], {
    routes: {
      listServices() {
        throw error;
      },
    },
  });
  expect(result.code).toBe(2);
  expect(result.stderr).toMatchInlineSnapshot(`
    "error: The task file has a problem.

    /project/x.yaml:2:3: unknown field
      2 |   replica: 2
        |   ^
      hint: Did you mean replicas?

    hint: Correct the listed lines.
    code: SVC_INVALID_TASK
    "
  `);
});

test('commands in help and hints begin with the name that the user typed', async () => {
  const env = { SVC_INVOKED_AS: './svc' };
  expect((await runInProcess(['serve', 'upp'], { env })).stderr).toContain('Run: ./svc serve --help\n');
  expect((await runInProcess(['serve', 'up', '--help'], { env })).stdout).toMatch(
    /^Usage: \.\/svc serve up [^]*\n {2}\.\/svc serve up service\.yaml\n/,
  );
  const json = await runInProcess(['serve', 'upp', '--json'], { env });
  expect(JSON.parse(json.stdout).error.hint).toContain('svc serve --help');
});

test('on a terminal, hints are wrapped between words but never inside commands', async () => {
  const routes = {
    health: () => {
      throw new SvcError('SVC_STATE_BUSY', 'Locked.', { hint: 'Something is to be done: svc serve status --endpoint chat. Then go on' });
    },
  };
  const { stderr } = await runInProcess(['controller', 'start'], { routes, tty: true, width: 40 });
  expect(stderr).toContain('hint: Something is to be done:\nsvc serve status --endpoint chat. Then\ngo on\n');
});

test('a bug is SVC_INTERNAL; SVC_DEBUG adds the stack', async () => {
  const routes = {
    listServices() {
      throw new TypeError('x is undefined');
    },
  };
  const plain = await runInProcess(['serve', 'status'], { routes });
  expect(plain).toMatchObject({
    code: 70,
    stderr: expect.stringMatching(/^error: Unexpected: x is undefined\nhint: .*\ncode: SVC_INTERNAL\n$/),
  });
  const debug = await runInProcess(['serve', 'status'], { routes, env: { SVC_DEBUG: '1' } });
  expect(debug.stderr).toMatch(/\n {4}at /);
});

test('Ctrl-C ends a command with exit code 130 and no error', async () => {
  const interrupt = new AbortController();
  const routes = {
    listServices() {
      interrupt.abort();
      throw new Error('aborted');
    },
  };
  expect(await runInProcess(['serve', 'status'], { routes, interrupt })).toMatchObject({ code: 130, stdout: '', stderr: '' });
});

test('colours are used only on terminals, and not with NO_COLOR', async () => {
  const routes = { listServices: () => ({ services: [aServiceView()] }) };
  const colours = async (tty: boolean, env: Readonly<Record<string, string>>): Promise<boolean> =>
    (await runInProcess(['serve', 'status'], { routes, tty, env })).stdout.includes('\u001B[32m');
  expect([await colours(true, { NO_COLOR: '' }), await colours(true, {}), await colours(false, { NO_COLOR: '' })]).toEqual([
    true,
    false,
    false,
  ]);
});
