import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { startLoopbackSshHost, type LoopbackSshHost } from '../../../test/support/loopback-ssh-hosts.ts';
import { needs } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { SshMachine } from './ssh-machine.ts';

/** A machine whose sshd does not run. */
async function withSilentMachine(use: (machine: SshMachine, host: LoopbackSshHost) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const host = await startLoopbackSshHost(join(dir, 'h'));
    await host.stop();
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    const { host: address, port = 22, user = '', identityFile = '' } = host.entry;
    const target = { name: 'h', host: address, port, user, identityFile, userConfig: false, hostKeys: 'pin-first' } as const;
    const machine = new SshMachine(target, paths, systemClock);
    try {
      await use(machine, host);
    } finally {
      await machine.end();
      await host.stop();
      await killProcessesOf(dir);
    }
  });
}

needs('sshd', () => {
  test('a connection is tried again after a repair of the way', async () => {
    await withSilentMachine(async (machine, host) => {
      let repairs = 0;
      machine.repair = async () => {
        repairs += 1;
        await host.start();
        return true;
      };
      await expect(machine.master('x').ensure()).resolves.toBeUndefined();
      expect(repairs).toBe(1);
    });
  });

  test.for([true, false])('a machine that stays silent is reported after one repair (done: %s)', async (isRepaired) => {
    await withSilentMachine(async (machine) => {
      let repairs = 0;
      machine.repair = () => {
        repairs += 1;
        return Promise.resolve(isRepaired);
      };
      await expect(machine.master('x').ensure()).rejects.toMatchObject({ code: 'SVC_SSH' });
      expect(repairs).toBe(1);
    });
  });
});
