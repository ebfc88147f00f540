import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { homePaths } from '../../src/shared/paths.ts';
import { withSvc, type Svc } from '../support/e2e.ts';
import { killProcessesOf } from '../support/leaks.ts';
import { failures, openLoad } from '../support/load.ts';
import { balancersOf, daemonOf, killHard, machinesOf, programsOf, reconcilersOf, standbysOf } from '../support/processes.ts';
import { finish, startSvc } from '../support/run-svc.ts';
import { waitFor } from '../support/wait-for.ts';

const hello = 'examples/hello/service.yaml';
const program = /server\.mjs|http\.server/;

const pids = (list: readonly { readonly pid: number }[]): readonly number[] => list.map(({ pid }) => pid);

/** Starts a service with two ready replicas, and records what must survive. */
async function helloService(svc: Svc) {
  await svc.ok(['serve', 'up', hello, '-n', 'hello']);
  const service = await svc.ready('hello', 2);
  const programs = await waitFor('both programs', () => {
    const found = programsOf(svc.home, program);
    return found.length === 2 && found;
  });
  return { service, programs: pids(programs) };
}

test('after kill -9 of the daemon the next command adopts everything without an outage', async () => {
  await withSvc(async (svc) => {
    const { service, programs } = await helloService(svc);
    const load = openLoad({ url: service.endpoint }, 50);
    const before = [...pids(reconcilersOf(svc.home)), ...pids(balancersOf(svc.home))];
    expect(killHard(daemonOf(svc.home))).toBe(1);
    await sleep(1_000);
    const after = await svc.service('hello');
    expect(pids(daemonOf(svc.home))).toHaveLength(1);
    expect([...pids(reconcilersOf(svc.home)), ...pids(balancersOf(svc.home))]).toEqual(before);
    expect(pids(programsOf(svc.home, program))).toEqual(programs);
    expect(after.replicas.map(({ id, status }) => [id, status])).toEqual(service.replicas.map(({ id }) => [id, 'READY']));
    expect(after.endpoint).toBe(service.endpoint);
    expect(failures(await load.stop())).toBe(0);
    await svc.end();
  });
});

test('a killed reconciler restarts without a command, adopts its replicas and heals again', async () => {
  await withSvc(async (svc) => {
    const { service, programs } = await helloService(svc);
    const load = openLoad({ url: service.endpoint }, 50);
    const [before] = pids(reconcilersOf(svc.home));
    killHard(reconcilersOf(svc.home));
    await waitFor('another reconciler', () => reconcilersOf(svc.home).some(({ pid }) => pid !== before));
    await sleep(1_000);
    expect(pids(programsOf(svc.home, program))).toEqual(programs);
    expect((await svc.service('hello')).replicas.map(({ id, status }) => [id, status])).toEqual([
      [1, 'READY'],
      [2, 'READY'],
    ]);
    expect(failures(await load.stop())).toBe(0);
    const [first] = programsOf(svc.home, program);
    killHard(first === undefined ? [] : [first]);
    await waitFor('the replacement', async () =>
      (await svc.service('hello')).replicas.some(({ id, status }) => id === 3 && status === 'READY'),
    );
    await svc.end();
  });
});

test('a killed balancer restarts at the same port within seconds, without a command', async () => {
  await withSvc(async (svc) => {
    const { service, programs } = await helloService(svc);
    const [before] = pids(balancersOf(svc.home));
    killHard(balancersOf(svc.home));
    await waitFor('another balancer', () => balancersOf(svc.home).some(({ pid }) => pid !== before));
    const answered = (): Promise<boolean> =>
      fetch(service.endpoint).then(
        (reply) => reply.ok,
        () => false,
      );
    await waitFor('an answer at the same port', answered);
    expect(pids(programsOf(svc.home, program))).toEqual(programs);
    expect((await svc.service('hello')).endpoint).toBe(service.endpoint);
    await svc.end();
  });
});

test('a killed replica program is replaced, and unanswered requests do not fail', async () => {
  await withSvc(async (svc) => {
    const { service } = await helloService(svc);
    const load = openLoad({ url: service.endpoint }, 50);
    const [first] = programsOf(svc.home, program);
    killHard(first === undefined ? [] : [first]);
    const healed = await waitFor('the replacement to be ready', async () => {
      const now = await svc.service('hello');
      return now.replicasReady === 2 && now.replicas.some(({ id }) => id === 3) && now;
    });
    const result = await load.stop();
    expect(result.failedBefore).toEqual({});
    expect(Object.keys(result.statuses)).toEqual(['200']);
    const failed = healed.replicas.find(({ status }) => status === 'FAILED');
    expect(failed?.reason).toContain('SIGKILL');
    await svc.end();
  });
});

test('killed setup fails the replica with a reason; another replaces it, nothing remains', async () => {
  await withSvc(async (svc) => {
    const file = svc.file(
      'slow.yaml',
      [
        'service: {replicas: 1}',
        'resources: {ports: 8080}',
        'setup: |',
        '  echo preparing',
        '  exec sleep 987',
        'run: python3 -m http.server 8080',
        '',
      ].join('\n'),
    );
    await svc.ok(['serve', 'up', file, '-n', 'slow']);
    const [setup] = await waitFor('setup', () => {
      const found = programsOf(svc.home, /sleep 987/);
      return found.length > 0 && found;
    });
    killHard(setup === undefined ? [] : [setup]);
    const failed = await waitFor('the failure', async () =>
      (await svc.service('slow')).replicas.find(({ id, status }) => id === 1 && status === 'FAILED'),
    );
    expect(failed.reason).toMatch(/setup/);
    expect(failed.reason).toContain('preparing');
    await waitFor('another try', async () => (await svc.service('slow')).replicas.some(({ id }) => id === 2));
    await svc.end();
  });
});

test('killing `up` at any moment leaves a complete service or none', async () => {
  await withSvc(async (svc) => {
    for (const [index, afterMs] of [0, 50, 100, 150, 200, 300, 400, 600].entries()) {
      const name = `maybe${index}`;
      const command = startSvc(['serve', 'up', hello, '-n', name, '--wait'], { home: svc.home });
      const ended = finish(command);
      await sleep(afterMs);
      command.kill('SIGKILL');
      await ended;
    }
    const services = await svc.services();
    for (const { name } of services) await svc.ready(name, 2);
    await svc.ok(['serve', 'down', '--all', '--yes']);
    await waitFor('no program to be left', () => programsOf(svc.home, program).length === 0);
    const isTidy = (): boolean => machinesOf(svc.home).length === 0;
    expect(await waitFor('no machine to be left', isTidy, { describe: () => machinesOf(svc.home) })).toBe(true);
    await svc.end();
  });
});

test('after everything is killed a command restores the services at their ports', async () => {
  await withSvc(async (svc) => {
    const { service } = await helloService(svc);
    await killProcessesOf(svc.home);
    const back = await svc.ready('hello', 2);
    expect(back.endpoint).toBe(service.endpoint);
    expect((await fetch(back.endpoint)).status).toBe(200);
    await waitFor('only two programs', () => programsOf(svc.home, program).length === 2);
    await waitFor('only two machines', () => machinesOf(svc.home).length === 2, { describe: () => machinesOf(svc.home) });
    await svc.end();
  });
});

test('after all svc processes are killed, running replicas are adopted without a restart', async () => {
  await withSvc(async (svc) => {
    const { service, programs } = await helloService(svc);
    killHard([...daemonOf(svc.home), ...reconcilersOf(svc.home), ...standbysOf(svc.home), ...balancersOf(svc.home)]);
    const back = await svc.ready('hello', 2);
    expect(back.endpoint).toBe(service.endpoint);
    expect(pids(programsOf(svc.home, program))).toEqual(programs);
    expect(back.replicas.map(({ id }) => id)).toEqual([1, 2]);
    await svc.end();
  });
});

test('after its socket is removed, only the daemon is restarted', async () => {
  await withSvc(async (svc) => {
    const { programs } = await helloService(svc);
    rmSync(homePaths(svc.home, process.getuid?.() ?? 0).controllerSocket);
    const back = await svc.ready('hello', 2);
    expect(back.replicas.map(({ id }) => id)).toEqual([1, 2]);
    expect(pids(programsOf(svc.home, program))).toEqual(programs);
    await svc.end();
  });
});

test('a service keeps its port while balancer and controller are dead', async () => {
  await withSvc(async (owner) => {
    const { service } = await helloService(owner);
    const port = new URL(service.endpoint).port;
    killHard(daemonOf(owner.home));
    killHard([...standbysOf(owner.home), ...balancersOf(owner.home)]);
    await waitFor('nobody to answer', async () => (await fetch(service.endpoint).catch(() => undefined)) === undefined);
    await withSvc(async (other) => {
      const refused = await other.run(['serve', 'up', hello, '-n', 'thief', '--endpoint-port', port, '-y']);
      expect(refused.code).toBe(4);
      expect(refused.stderr).toContain(`Port ${port} belongs to service 'hello' of the home ${owner.home}`);
      expect(refused.stderr).toContain(`SVC_HOME='${owner.home}' svc serve down hello`);
      await other.ok(['serve', 'up', hello, '-n', 'neighbour', '-y']);
      expect((await other.service('neighbour')).endpoint).not.toBe(service.endpoint);
      // The next command of the same home restores the endpoint at the same port.
      expect((await owner.service('hello')).endpoint).toBe(service.endpoint);
      await waitFor('the endpoint', async () => (await fetch(service.endpoint).catch(() => undefined))?.ok === true);
      await owner.ok(['serve', 'down', 'hello', '-y']);
      await waitFor('the port to be free', async () => {
        const { code } = await other.run(['serve', 'up', hello, '-n', 'heir', '--endpoint-port', port, '-y']);
        return code === 0;
      });
      await other.end();
    });
    await owner.end();
  });
});
