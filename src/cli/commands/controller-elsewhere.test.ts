import { expect, test } from 'vitest';
import { aHealth } from '../../../test/support/api.ts';
import { aControllerRecord } from '../../../test/support/builders.ts';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { fakeClient, type FakeRoutes } from '../../../test/support/fake-client.ts';
import { aServiceView } from '../../../test/support/views.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { SvcError } from '../../shared/errors.ts';
import type { Elsewhere } from '../elsewhere-connection.ts';

const record = aControllerRecord({
  place: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 },
  machineId: 'us-east-2/i-1',
  program: 'abc',
  boot: 'systemd',
  socket: '/home/ubuntu/controller.sock',
  publicHost: '203.0.113.7',
});

const idle: FakeRoutes = { listServices: () => ({ services: [] }), listClusters: () => ({ clusters: [] }), health: () => aHealth };

/** A controller on another machine that notes what is done to it. */
function anElsewhere(machine: MachineStatus, routes: FakeRoutes | undefined) {
  const done: string[] = [];
  const api = routes === undefined ? undefined : fakeClient(routes, []);
  const elsewhere: Elsewhere = {
    client: async () => fakeClient(routes ?? idle, []),
    clientIfChosen: async () => api,
    existing: async () => api,
    running: async () => api,
    bring: async () => undefined,
    checkWish: async () => undefined,
    plan: async () => undefined,
    planWhileHere: async () => undefined,
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
  return { elsewhere, done };
}

test('its machine is given back when nothing needs it any more', async () => {
  const { elsewhere, done } = anElsewhere({ state: 'running' }, idle);
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { elsewhere });
  expect({ code, done }).toEqual({ code: 0, done: ['remove'] });
  expect(stderr).toContain('at aws/us-east-2 (m6i.xlarge, 0.192 $/h) was given back');
});

test('it is kept while there are services, which are named', async () => {
  const { elsewhere, done } = anElsewhere(
    { state: 'running' },
    { ...idle, listServices: () => ({ services: [aServiceView({ name: 'chat' })] }) },
  );
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes'], { elsewhere });
  expect({ code, done }).toEqual({ code: 4, done: [] });
  expect(stderr).toContain('still looks after: chat');
});

test('one that cannot be asked is kept, unless everything is to go', async () => {
  const { elsewhere, done } = anElsewhere({ state: 'running' }, undefined);
  const silent: Elsewhere = {
    ...elsewhere,
    running: async () => {
      throw new SvcError('SVC_SSH', 'It does not answer.');
    },
  };
  const refused = await runInProcess(['controller', 'down', '--yes'], { elsewhere: silent });
  expect({ code: refused.code, done: [...done] }).toEqual({ code: 75, done: [] });
  expect(refused.stderr).toContain('--purge');
  expect((await runInProcess(['controller', 'down', '--yes', '--purge'], { elsewhere: silent })).code).toBe(0);
  expect(done).toEqual(['remove with everything']);
});

test('what is said of one that never answers again is where it may go on', async () => {
  const { elsewhere } = anElsewhere({ state: 'running' }, undefined);
  const gone: Elsewhere = { ...elsewhere, remove: async () => 'rack/10.0.0.1/0123456789abcdef' };
  const { code, stderr } = await runInProcess(['controller', 'down', '--yes', '--purge'], { elsewhere: gone });
  expect(code).toBe(0);
  expect(stderr).toContain('rack/10.0.0.1/0123456789abcdef, does not answer and was forgotten');
  expect(stderr).toContain('If its host comes back');
});

test('one whose machine is stopped had nothing left to do', async () => {
  const { elsewhere, done } = anElsewhere({ state: 'stopped' }, undefined);
  expect((await runInProcess(['controller', 'down', '--yes'], { elsewhere })).code).toBe(0);
  expect(done).toEqual(['remove']);
});

test('without a yes nothing is given back', async () => {
  const { elsewhere, done } = anElsewhere({ state: 'running' }, idle);
  expect((await runInProcess(['controller', 'down'], { elsewhere })).stderr).toContain('SVC_CONFIRM_NEEDED');
  expect(done).toEqual([]);
});

test('where the controller is on this machine there is nothing to give back or to bring a program to', async () => {
  expect((await runInProcess(['controller', 'down', '--yes'])).stderr).toContain('svc controller stop');
  expect((await runInProcess(['controller', 'upgrade'])).stderr).toContain('on this machine');
});

test('the status tells where it is and what that costs, also when it is stopped', async () => {
  const on = anElsewhere({ state: 'running' }, idle);
  const shown = await runInProcess(['controller', 'status'], { elsewhere: on.elsewhere, routes: idle });
  expect(shown.stdout).toContain('aws/us-east-2 (m6i.xlarge, 0.192 $/h), 203.0.113.7');
  const off = anElsewhere({ state: 'stopped' }, undefined);
  const { code, stdout } = await runInProcess(['controller', 'status'], { elsewhere: off.elsewhere });
  expect(code).toBe(3);
  expect(stdout).toContain('is stopped, and the next service starts it');
});

test.each(['upgrade', 'restart'])('svc controller %s brings this program to it', async (command) => {
  const { elsewhere, done } = anElsewhere({ state: 'running' }, idle);
  expect((await runInProcess(['controller', command], { elsewhere })).stderr).toContain('runs version 1.2.3 now');
  expect(done).toEqual(['upgrade']);
});

const plan = {
  place: { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 't3a.xlarge' },
  hourlyUsd: 0.16,
  monthlyUsd: 116.8,
  isNew: true,
  given: ['keys of the AWS profile lab'],
  note: null,
};

test('a controller that would be brought up is shown with its price and what it is given, and asked about', async () => {
  const { elsewhere } = anElsewhere({ state: 'running' }, idle);
  const planned: Elsewhere = { ...elsewhere, plan: async () => plan };
  const file = 'examples/hello/service.yaml';
  const cwd = new URL('../../..', import.meta.url).pathname;
  const shown = await runInProcess(['serve', 'plan', file], { elsewhere: planned, cwd, width: 110 });
  expect(shown.stdout).toContain('Controller: a new one at aws/us-east-2, t3a.xlarge (0.16 $/h, 116.80 $/month while it runs).');
  expect(shown.stdout).toContain('It is given keys of the AWS profile lab.');
  const refused = await runInProcess(['serve', 'up', file], { elsewhere: planned, cwd, routes: idle });
  expect(refused.stderr).toContain('SVC_CONFIRM_NEEDED');
  expect(refused.calls.map(({ name }) => name)).not.toContain('createService');
});
