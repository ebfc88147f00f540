import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { expectNoLeaks } from '../support/leaks.ts';
import { balancersOf, daemonOf, killHard, reconcilersOf } from '../support/processes.ts';
import { fillDisk, withSmallDisk } from '../support/small-disk.ts';
import { waitFor } from '../support/wait-for.ts';

const isRoot = process.getuid?.() === 0;

/** Starts a service with ready replicas on a small disk, whose controller has reserved space. */
async function withServiceOnDisk(options: string, use: (svc: Svc, disk: string) => Promise<void>): Promise<void> {
  await withSvc(async (svc) => {
    const disk = svc.home;
    await withSmallDisk(disk, options, async () => {
      mkdirSync(join(disk, 'home'));
      await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello']);
      await svc.ready('hello', 2);
      await waitFor('the reserve', () => existsSync(join(disk, 'reserve', '15')));
      await use(svc, disk);
      await svc.ok(['controller', 'stop']);
    });
    await expectNoLeaks(svc.home);
  });
}

/** Starts a program of the same user that writes to a disk as fast as it can, and continues when it is full. */
async function whileFilling(disk: string, work: () => Promise<void>): Promise<void> {
  const program = `const { openSync, writeSync } = require('node:fs');
    const file = openSync(process.argv[1], 'a');
    const bytes = Buffer.alloc(65536);
    for (;;) try { writeSync(file, bytes); } catch {}`;
  const child = spawn(process.execPath, ['--eval', program, join(disk, 'junk')], { stdio: 'ignore' });
  try {
    await waitFor('the disk to be full', () => statfsSync(disk).bavail < 16);
    await work();
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    rmSync(join(disk, 'junk'), { force: true });
  }
}

/** Makes files in a new folder until the disk has no inodes left. */
function fillInodes(folder: string): void {
  mkdirSync(folder);
  expect(() => {
    for (let index = 0; ; index += 1) closeSync(openSync(join(folder, String(index)), 'w'));
  }).toThrow('ENOSPC');
}

const killControllers = (home: string): number => killHard([...daemonOf(home), ...reconcilersOf(home)]);

test.skipIf(!isRoot)('replicas and services are removed while a program fills the disk', async () => {
  await withServiceOnDisk('size=220m', async (svc, disk) => {
    await whileFilling(disk, async () => {
      const warning = /\nThe disk of \S+ is full or nearly full: 0 MiB and \d+ inodes are free\./;
      // The controller may have just freed a part of the reserve: the program fills it soon.
      await waitFor('the warning', async () => warning.test(await svc.ok(['serve', 'status'])));
      await svc.ok(['serve', 'terminate-replica', 'hello', '1', '-y']);
      await waitFor('the replica to end', async () =>
        (await svc.service('hello')).replicas.some(({ id, endedAt }) => id === 1 && endedAt !== null),
      );
      await svc.ok(['serve', 'down', 'hello', '-y']);
      expect(await svc.services()).toEqual([]);
    });
  });
});

test.skipIf(!isRoot)('a controller killed on a full disk restarts, lists and removes its services', async () => {
  await withServiceOnDisk('size=220m', async (svc, disk) => {
    fillDisk(join(disk, 'junk'));
    for (let kill = 0; kill < 2; kill += 1) {
      killControllers(svc.home);
      expect((await svc.services()).map(({ name, replicasReady }) => ({ name, replicasReady }))).toEqual([
        { name: 'hello', replicasReady: 2 },
      ]);
    }
    killControllers(svc.home);
    await svc.ok(['serve', 'down', 'hello', '-y']);
    rmSync(join(disk, 'junk'));
  });
});

test.skipIf(!isRoot)('a controller killed on a disk without inodes restarts and removes its services', async () => {
  await withServiceOnDisk('size=220m,nr_inodes=1000', async (svc, disk) => {
    fillInodes(join(disk, 'junk'));
    killControllers(svc.home);
    await svc.ok(['serve', 'down', 'hello', '-y']);
    expect(await svc.services()).toEqual([]);
    rmSync(join(disk, 'junk'), { recursive: true });
  });
});

test.skipIf(!isRoot)('other replicas serve while one fills the disk, and its removal frees it', async () => {
  await withServiceOnDisk('size=220m', async (svc, disk) => {
    const { endpoint } = await svc.service('hello');
    const filler = svc.file('filler.yaml', 'service: {}\nresources:\n  ports: 8080\nrun: cat /dev/zero > junk; sleep 100000\n');
    await svc.ok(['serve', 'up', filler, '-n', 'filler', '--no-wait']);
    await waitFor('the disk to be full', () => statfsSync(disk).bavail < 16);
    for (let count = 0; count < 200; count += 1) expect((await fetch(endpoint)).status).toBe(200);
    const warning = /is full or nearly full/;
    await waitFor('the warning', async () => warning.test(await svc.ok(['serve', 'status'])));
    expect((await svc.service('hello')).replicas.map(({ status }) => status)).toEqual(['READY', 'READY']);
    await svc.ok(['serve', 'down', 'filler', '-y']);
    await waitFor('free space', () => statfsSync(disk).bavail > 1_000);
    expect((await fetch(endpoint)).status).toBe(200);
    await svc.ok(['serve', 'down', 'hello', '-y']);
  });
});

for (const { what, processesOf } of [
  { what: 'reconciler', processesOf: reconcilersOf },
  { what: 'balancer', processesOf: balancersOf },
]) {
  test.skipIf(!isRoot)(`a killed ${what} restarts on a full disk, and the service is removed`, async () => {
    await withServiceOnDisk('size=220m', async (svc, disk) => {
      const { endpoint } = await svc.service('hello');
      await whileFilling(disk, async () => {
        expect(killHard(processesOf(svc.home))).toBe(1);
        await waitFor('the endpoint', async () => (await fetch(endpoint).catch(() => undefined))?.ok === true);
        await svc.ok(['serve', 'down', 'hello', '-y']);
        expect(await svc.services()).toEqual([]);
      });
    });
  });
}

test.skipIf(!isRoot)('a killed balancer restarts on a disk without inodes', async () => {
  await withServiceOnDisk('size=220m,nr_inodes=1000', async (svc, disk) => {
    const { endpoint } = await svc.service('hello');
    fillInodes(join(disk, 'junk'));
    expect(killHard(balancersOf(svc.home))).toBe(1);
    await waitFor('the endpoint', async () => (await fetch(endpoint).catch(() => undefined))?.ok === true);
    await svc.ok(['serve', 'down', 'hello', '-y']);
    rmSync(join(disk, 'junk'), { recursive: true });
  });
});
