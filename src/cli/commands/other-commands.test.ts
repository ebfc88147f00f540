import { expect, test } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';
import { providerNames } from '../../providers/registry.ts';
import { SvcError } from '../../shared/errors.ts';
import { aClusterView, aHealthReply, aServiceView } from '../../../test/support/views.ts';

// No process has this pid: Linux assigns pids up to 2^22.
const noPid = 2 ** 22 + 1;

const atBoot = 'After a reboot   the next command starts it; to have it started at boot: svc controller install';

test('the exit code of controller status reports whether it runs', async () => {
  const off = await runInProcess(['controller', 'status']);
  expect(off).toMatchObject({ code: 3, stdout: `The controller does not run. Its log is /home/ann/.svc/controller.log\n${atBoot}\n` });
  const on = await runInProcess(['controller', 'status'], { routes: { health: () => aHealthReply({ idleStopSeconds: 605 }) } });
  expect(on.code).toBe(0);
  expect(on.stdout).toMatchInlineSnapshot(`
    "Process          99
    Version          0.1.0
    Uptime           1h
    Services         1 of at most 16
    Clusters         0
    Stops by itself  in 10m 5s
    Log              /home/ann/.svc/controller.log
    Other clients    this user's commands with SVC_HOME=/home/ann/.svc; from another machine: ssh USER@MACHINE svc serve status
    After a reboot   the next command starts it; to have it started at boot: svc controller install
    "
  `);
});

test('controller status --json reports that no controller runs', async () => {
  const off = await runInProcess(['controller', 'status', '--json']);
  expect(JSON.parse(off.stdout)).toEqual({
    running: false,
    log: '/home/ann/.svc/controller.log',
    controller: null,
    machine: null,
    boot: null,
    differences: [],
  });
});

test('stopping a controller that does not run succeeds', async () => {
  expect(await runInProcess(['controller', 'stop'])).toMatchObject({ code: 0, stderr: 'The controller does not run.\n' });
});

test('controller stop passes on --keep-services', async () => {
  const routes: FakeRoutes = { health: () => aHealthReply({ pid: noPid }), stopController: () => ({ stopping: true }) };
  const { code, calls } = await runInProcess(['controller', 'stop', '--keep-services'], { routes });
  expect({ code, call: calls.at(-1) }).toEqual({ code: 0, call: { name: 'stopController', input: { body: { keepServices: true } } } });
});

test('controller stop fails while services need it', async () => {
  const routes: FakeRoutes = {
    health: () => aHealthReply(),
    stopController() {
      throw new SvcError('SVC_CONTROLLER_BUSY', 'The controller still has: chat.');
    },
  };
  const { code, stderr } = await runInProcess(['controller', 'stop'], { routes });
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('code: SVC_CONTROLLER_BUSY') });
});

test('controller restart prints the new process and version', async () => {
  const routes: FakeRoutes = { health: () => aHealthReply({ pid: noPid, version: '0.2.0' }) };
  const { code, stderr } = await runInProcess(['controller', 'restart'], { routes });
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `The controller runs as process ${noPid}, version 0.2.0. Its log is /home/ann/.svc/controller.log\n`,
  });
});

test('controller start prints the path of its log', async () => {
  const { code, stderr } = await runInProcess(['controller', 'start'], { routes: { health: () => aHealthReply() } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'The controller runs as process 99. Its log is /home/ann/.svc/controller.log\n' });
});

test.for(['bash', 'zsh', 'fish'])('completion prints the script for %s', async (shell) => {
  const { code, stdout } = await runInProcess(['completion', shell]);
  expect(code).toBe(0);
  expect(stdout).toContain(' complete -- ');
});

test('completion of an unknown shell lists the known ones', async () => {
  expect(await runInProcess(['completion', 'tcsh'])).toMatchObject({ code: 2, stderr: expect.stringContaining('bash, zsh, fish') });
});

const offered = async (words: readonly string[], routes?: FakeRoutes): Promise<readonly string[]> => {
  const { stdout } = await runInProcess(['complete', '--', ...words], routes === undefined ? {} : { routes });
  return stdout.trim().split('\n');
};

test('names of services and clusters are completed with their state', async () => {
  const routes: FakeRoutes = {
    listServices: () => ({ services: [aServiceView(), aServiceView({ name: 'embed', status: 'FAILED' })] }),
    listClusters: () => ({ clusters: [aClusterView()] }),
  };
  expect(await offered(['serve', 'down', ''], routes)).toEqual(['chat\tREADY', 'embed\tFAILED', ':none']);
  expect(await offered(['serve', 'logs', 'e'], routes)).toEqual(['embed\tFAILED', ':none']);
  expect(await offered(['exec', ''], routes)).toEqual(['dev\tUP', ':none']);
});

test('complete starts nothing and never fails', async () => {
  expect(await offered(['serve', 'down', ''])).toEqual([':none']);
  expect(await offered(['serve', 'down', ''], {})).toEqual([':none']);
});

test('files, providers and shells are completed', async () => {
  expect(await offered(['serve', 'up', 'ex'])).toEqual([':files']);
  expect(await offered(['serve', 'up', '--workdir', ''])).toEqual([':folders']);
  expect(await offered(['check', ''])).toEqual([...providerNames.map((name) => `${name}\t`), ':none']);
  expect(await offered(['completion', 'z'])).toEqual(['zsh\t', ':none']);
});

test('check --role works under both names of Kubernetes, and only there', async () => {
  const { code, stdout } = await runInProcess(['check', 'k8s', '--role']);
  expect(code).toBe(0);
  expect(stdout).toContain('kind: Role\n');
  expect(stdout).toBe((await runInProcess(['check', 'kubernetes', '--role'])).stdout);
  const aws = await runInProcess(['check', 'aws', '--role']);
  expect(aws.code).toBe(2);
  expect(aws.stderr).toContain('There is no role to print for aws.');
  expect((await runInProcess(['check', 'k8s/prod', 'ssh', '--role'])).stderr).toContain('There is no role to print for ssh.');
});
