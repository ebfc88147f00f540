import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { needs } from '../../../test/support/needs.ts';
import { startLoopbackSshHost } from '../../../test/support/loopback-ssh-hosts.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { SshRemote } from './index.ts';

/** The child processes that keep this process alive. */
const heldChildren = (): number => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;

needs('sshd', () => {
  test('short files are read over a session that does not keep this process alive', async () => {
    await withTempHome(async (dir) => {
      const host = await startLoopbackSshHost(join(dir, 'h'));
      const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
      prepareHome(paths);
      const { host: address, port = 22, user = '', identityFile = '' } = host.entry;
      const remote = new SshRemote({
        target: () => Promise.resolve({ name: 'h', host: address, port, user, identityFile, userConfig: false, hostKeys: 'pin-first' }),
        baseDir: host.home,
        enter: [],
        environment: {},
        paths,
        // The session never becomes idle.
        clock: { ...systemClock, after: () => () => undefined },
      });
      try {
        const before = heldChildren();
        // A slow computer may need more than the 5 s of a read.
        const stat = await waitFor('an answer', () => remote.readText('/proc/self/stat'));
        expect(stat).toContain('(sh)');
        await waitFor('only the children from before to be held', () => heldChildren() === before, { describe: heldChildren });
      } finally {
        await remote.forget();
        await host.stop();
        await killProcessesOf(dir);
      }
    });
  });
});
