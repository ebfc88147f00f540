import { expect, test } from 'vitest';
import { aHealth } from '../../../test/support/api.ts';
import { aControllerRecord } from '../../../test/support/builders.ts';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { fakeClient, type FakeRoutes } from '../../../test/support/fake-client.ts';
import { aServiceView } from '../../../test/support/views.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { SvcError } from '../../shared/errors.ts';
import type { RemoteController } from '../connection/controller-connection.ts';

const record = aControllerRecord({
  machine: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  machineId: 'us-east-2/i-1',
  program: 'abc',
  boot: 'systemd',
  socket: '/home/ubuntu/controller.sock',
  publicHost: '203.0.113.7',
});

const idle: FakeRoutes = { listServices: () => ({ services: [] }), listClusters: () => ({ clusters: [] }), health: () => aHealth };

/** A remote controller that records the calls to it. */
function aRemoteController(machine: MachineStatus, routes: FakeRoutes | undefined) {
  const done: string[] = [];
  const api = routes === undefined ? undefined : fakeClient(routes, []);
  const remoteController: RemoteController = {
    client: async () => fakeClient(routes ?? idle, []),
    clientIfChosen: async () => api,
    existing: async () => api,
    running: async () => api,
    bring: async () => undefined,
    preflight: async () => undefined,
    plan: async () => undefined,
    planWhileLocal: async () => undefined,
    record: () => record,
    machine: async () => machine,
    differences: async () => [],
    upgrade: async () => {
      done.push('upgrade');
      return { isNew: true };
    },
    remove: async (purge) => {
      done.push(`remove${purge ? ' with everything' : ''}`);
      return undefined;
    },
  };
  return { remoteController, done };
}

test('install is refused for a controller on another machine', async () => {
  const { remoteController } = aRemoteController({ state: 'running' }, idle);
  const { code, stderr } = await runInProcess(['controller', 'install'], { remoteController });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('starts it by itself after a reboot') });
});

test.for(['backup', 'restore'])('%s is refused for a controller on another machine, with what to keep instead', async (command) => {
  const { remoteController } = aRemoteController({ state: 'running' }, idle);
  const { code, stderr } = await runInProcess(['controller', command, 'b.tar.gz'], { remoteController });
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining('Keep the service files') });
});

test('a unit of an earlier local controller starts nothing beside a remote one', async () => {
  const { remoteController } = aRemoteController({ state: 'running' }, idle);
  const { code, stderr } = await runInProcess(['controller', 'start', '--foreground'], { remoteController });
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'The controller is on another machine: nothing is started here.\n' });
});

test('down terminates the machine of a controller without services', async () => {
  const { remoteController, done } = aRemoteController({ state: 'running' }, idle);
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { remoteController });
  expect({ code, done }).toEqual({ code: 0, done: ['remove'] });
  expect(stderr).toContain('at aws/us-east-2 (m6i.xlarge, 0.192 $/h) was terminated');
});

test('down refuses a controller with services and names them', async () => {
  const { remoteController, done } = aRemoteController(
    { state: 'running' },
    { ...idle, listServices: () => ({ services: [aServiceView({ name: 'chat' })] }) },
  );
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { remoteController });
  expect({ code, done }).toEqual({ code: 4, done: [] });
  expect(stderr).toContain('still looks after: chat');
});

test('down refuses an unreachable controller except with --purge', async () => {
  const { remoteController, done } = aRemoteController({ state: 'running' }, undefined);
  const silent: RemoteController = {
    ...remoteController,
    running: async () => {
      throw new SvcError('SVC_SSH', 'It does not answer.');
    },
  };
  const refused = await runInProcess(['controller', 'down', '--yes'], { remoteController: silent });
  expect({ code: refused.code, done: [...done] }).toEqual({ code: 75, done: [] });
  expect(refused.stderr).toContain('--purge');
  expect((await runInProcess(['controller', 'down', '--yes', '--purge'], { remoteController: silent })).code).toBe(0);
  expect(done).toEqual(['remove with everything']);
});

test('down --purge names the unreachable machine that may still run', async () => {
  const { remoteController } = aRemoteController({ state: 'running' }, undefined);
  const gone: RemoteController = { ...remoteController, remove: async () => 'rack/10.0.0.1/0123456789abcdef' };
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes', '--purge'], { remoteController: gone });
  expect(code).toBe(0);
  expect(stderr).toContain('rack/10.0.0.1/0123456789abcdef, does not answer and was forgotten');
  expect(stderr).toContain('If its host comes back');
});

test('down removes a controller whose machine is stopped', async () => {
  const { remoteController, done } = aRemoteController({ state: 'stopped' }, undefined);
  expect((await runInProcess(['controller', 'down', '--yes'], { remoteController })).code).toBe(0);
  expect(done).toEqual(['remove']);
});

test('down without confirmation terminates nothing', async () => {
  const { remoteController, done } = aRemoteController({ state: 'running' }, idle);
  expect((await runInProcess(['controller', 'down'], { remoteController })).stderr).toContain('SVC_CONFIRM_NEEDED');
  expect(done).toEqual([]);
});

test('down and upgrade of a local controller change nothing', async () => {
  expect((await runInProcess(['controller', 'down', '--yes'])).stderr).toContain('svc controller stop');
  expect((await runInProcess(['controller', 'upgrade'])).stderr).toContain('on this machine');
});

test('the status shows location and cost, also when the machine is stopped', async () => {
  const on = aRemoteController({ state: 'running' }, idle);
  const shown = await runInProcess(['controller', 'status'], { remoteController: on.remoteController, routes: idle });
  expect(shown.stdout).toContain('aws/us-east-2 (m6i.xlarge, 0.192 $/h), 203.0.113.7');
  expect(shown.stdout).toMatch(/^Other clients +copy controller\.json/m);
  const off = aRemoteController({ state: 'stopped' }, undefined);
  const { code, stdout } = await runInProcess(['controller', 'status'], { remoteController: off.remoteController });
  expect(code).toBe(3);
  expect(stdout).toContain('is stopped, and the next service starts it');
});

test.each(['upgrade', 'restart'])('svc controller %s installs this program on the remote controller', async (command) => {
  const { remoteController, done } = aRemoteController({ state: 'running' }, idle);
  expect((await runInProcess(['controller', command], { remoteController })).stderr).toContain('runs version 1.2.3 now');
  expect(done).toEqual(['upgrade']);
});

const plan = {
  machine: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 't3a.xlarge' },
  hourlyUsd: 0.16,
  monthlyUsd: 116.8,
  isNew: true,
  given: ['keys of the AWS profile lab'],
  note: null,
};

test('a new controller needs confirmation and is shown with price and credentials', async () => {
  const { remoteController } = aRemoteController({ state: 'running' }, idle);
  const planned: RemoteController = { ...remoteController, plan: async () => plan };
  const file = 'examples/hello/service.yaml';
  const cwd = new URL('../../..', import.meta.url).pathname;
  const shown = await runInProcess(['serve', 'plan', file], { remoteController: planned, cwd, width: 110 });
  expect(shown.stdout).toContain('Controller: a new one at aws/us-east-2, t3a.xlarge (0.16 $/h, 116.80 $/month while it runs).');
  expect(shown.stdout).toContain('It is given keys of the AWS profile lab.');
  const refused = await runInProcess(['serve', 'up', file], { remoteController: planned, cwd, routes: idle });
  expect(refused.stderr).toContain('SVC_CONFIRM_NEEDED');
  expect(refused.calls.map(({ name }) => name)).not.toContain('createService');
});
