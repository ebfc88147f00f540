import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { aServiceView, handlersWith } from '../../test/support/api.ts';
import { finish, runSvc, startSvc, testEnv } from '../../test/support/run-svc.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import type { ApiHandlers } from '../api/handlers.ts';
import { serveApi } from '../api/server.ts';
import { systemClock } from '../shared/clock.ts';
import { homePaths, type HomePaths } from '../shared/paths.ts';
import { prepareHome } from '../shared/system/prepare-home.ts';

const health: ApiHandlers['health'] = async () => ({
  apiVersion: 1,
  version: '0.0.0',
  pid: process.pid,
  startedAt: '2030-01-01T12:00:00.000Z',
  services: 1,
  serviceLimit: 16,
  place: null,
  clusters: 0,
  idleStopSeconds: null,
  log: '/log',
});

/** A home whose controller is this process. */
async function withController(handlers: Partial<ApiHandlers>, use: (paths: HomePaths) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    prepareHome(paths);
    const log = { error: () => undefined, debug: () => undefined };
    const server = await serveApi({
      socketPath: paths.controllerSocket,
      handlers: handlersWith({ health, ...handlers }),
      log,
      clock: systemClock,
      version: '0.0.0',
    });
    try {
      await use(paths);
    } finally {
      await server.close();
    }
  });
}

/** The standard error of a command, without the line that it prints when a busy machine makes it wait. */
const withoutWaiting = (stderr: string): string => stderr.replace('Waiting for the controller...\n', '');

/** Continues until the client disconnects. */
async function* endlessLog(signal: AbortSignal): AsyncGenerator<string> {
  for (let line = 0; !signal.aborted; line += 1) {
    yield `line ${line} ${'x'.repeat(1_000)}\n`;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a command connects to the controller of its home', async () => {
  await withController({ listServices: async () => ({ services: [aServiceView] }) }, async ({ home }) => {
    const { code, stdout } = await runSvc(['serve', 'status', '--json'], { home });
    expect({ code, reply: JSON.parse(stdout) }).toEqual({ code: 0, reply: { services: [aServiceView] } });
  });
});

test('when the reader closes the pipe, the command ends without an error', async () => {
  await withController({ serviceLogs: ({ signal }) => endlessLog(signal) }, async ({ home }) => {
    const svc = startSvc(['serve', 'logs', 'chat', '1'], { home });
    let stderr = '';
    svc.stderr?.on('data', (chunk) => (stderr += String(chunk)));
    if (svc.stdout !== null) {
      await once(svc.stdout, 'data');
      svc.stdout.destroy();
    }
    const [code] = await once(svc, 'close');
    expect({ code, stderr: withoutWaiting(stderr) }).toEqual({ code: 0, stderr: '' });
  });
});

test('Ctrl-C ends a followed log with exit code 130', async () => {
  await withController({ serviceLogs: ({ signal }) => endlessLog(signal) }, async ({ home }) => {
    const svc = startSvc(['serve', 'logs', 'chat', '1'], { home });
    if (svc.stdout !== null) await once(svc.stdout, 'data');
    svc.kill('SIGINT');
    const { code, stderr } = await finish(svc);
    expect({ code, stderr: withoutWaiting(stderr) }).toEqual({ code: 130, stderr: '' });
  });
});

/**
 * Prints to standard error when our SIGINT handler is installed. Before that, Node.js's own handler ends the process.
 */
const reportHandler =
  "data:text/javascript,process.on('newListener', (name) => name === 'SIGINT' && setImmediate(() => process.stderr.write('handler\\n')))";

test('a second Ctrl-C ends an operation that cannot be interrupted', async () => {
  await withTempHome(async (home) => {
    // The command reads a file from standard input, which cannot be interrupted.
    const svc = spawn('node_modules/.bin/node', ['--import', reportHandler, 'src/cli/main.ts', 'serve', 'up', '-'], {
      env: testEnv({ home }),
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    try {
      const exit = once(svc, 'exit');
      await once(svc.stderr, 'data');
      await waitFor('the end', () => svc.signalCode !== null || svc.exitCode !== null || (svc.kill('SIGINT') && false), { everyMs: 100 });
      expect(await exit).toEqual([null, 'SIGINT']);
    } finally {
      svc.kill('SIGKILL');
    }
  });
});

test('a bug in a callback is reported as SVC_INTERNAL without its stack', async () => {
  await withController({ serviceLogs: ({ signal }) => endlessLog(signal) }, async ({ home }) => {
    const bug = "data:text/javascript,process.on('SIGUSR2', () => { throw new TypeError('x is undefined'); })";
    const args = ['--import', bug, 'src/cli/main.ts', 'serve', 'logs', 'chat', '1'];
    const svc = spawn('node_modules/.bin/node', args, { env: testEnv({ home }), stdio: ['ignore', 'pipe', 'pipe'] });
    await once(svc.stdout, 'data');
    svc.kill('SIGUSR2');
    const { code, stderr } = await finish(svc);
    expect({ code, stderr: withoutWaiting(stderr) }).toEqual({
      code: 70,
      stderr: expect.stringMatching(/^error: Unexpected: x is undefined\nhint: .*\ncode: SVC_INTERNAL\n$/),
    });
  });
});

test('exit codes depend on the kind of error', async () => {
  await withTempHome(async (home) => {
    const codeOf = async (...args: readonly string[]): Promise<number | null> => (await runSvc(args, { home })).code;
    expect(
      await Promise.all([
        codeOf('--version'),
        codeOf('serve', 'upp'),
        codeOf('serve', 'up', 'nowhere.yaml'),
        codeOf('serve', 'events', 'x'),
      ]),
    ).toEqual([0, 2, 3, 3]);
  });
});
