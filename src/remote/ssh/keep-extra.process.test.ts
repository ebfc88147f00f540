import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { needs } from '../../../test/support/needs.ts';
import { startLoopbackSshHost } from '../../../test/support/loopback-ssh-hosts.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { SshRemote } from './index.ts';

const tools = 'cat chmod cp dirname find head mkdir mv rm setsid sh sleep tail tar touch wc xargs'.split(' ');
const cases: readonly (readonly [by: string, tools: readonly string[] | undefined])[] = [
  ['rsync', undefined],
  ['tar', tools],
];

needs('sshd', () => {
  test.for(cases)('copying by %s into a shared folder adds files and removes none', async ([, given]) => {
    await withTempHome(async (dir) => {
      const host = await startLoopbackSshHost(join(dir, 'h'), given === undefined ? {} : { tools: given });
      const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
      prepareHome(paths);
      const { host: address, port = 22, user = '', identityFile = '' } = host.entry;
      const remote = new SshRemote({
        target: () => Promise.resolve({ name: 'h', host: address, port, user, identityFile, userConfig: false, hostKeys: 'pin-first' }),
        baseDir: host.home,
        enter: [],
        environment: {},
        paths,
        clock: systemClock,
      });
      try {
        const source = join(dir, 'source');
        mkdirSync(join(source, 'cache', 'deep'), { recursive: true });
        writeFileSync(join(source, 'cache', 'deep', 'new'), 'new');
        writeFileSync(join(source, 'page'), 'page');
        chmodSync(source, 0o777);
        const theirs = join(host.home, 'theirs');
        mkdirSync(join(theirs, 'big'), { recursive: true });
        mkdirSync(join(theirs, 'page-folder'));
        writeFileSync(join(theirs, 'big', 'old'), 'old');
        symlinkSync('big', join(theirs, 'cache'));
        chmodSync(theirs, 0o711);
        const link = join(host.home, 'link');
        symlinkSync('theirs', link);

        for (let round = 0; round < 2; round += 1) {
          await remote.copyTo(source, link, { keepExtra: true, isShared: true });
          expect(lstatSync(link).isSymbolicLink()).toBe(true);
          expect(lstatSync(join(theirs, 'cache')).isSymbolicLink()).toBe(true);
          expect(statSync(theirs).mode & 0o777).toBe(0o711);
          expect(readFileSync(join(theirs, 'big', 'deep', 'new'), 'utf8')).toBe('new');
          expect(readFileSync(join(theirs, 'big', 'old'), 'utf8')).toBe('old');
          expect(readFileSync(join(theirs, 'page'), 'utf8')).toBe('page');
        }
        const notAFolder = expect.objectContaining({ code: 'SVC_PLACE_FAILED' });
        await expect(remote.copyTo(join(source, 'page'), theirs, { keepExtra: true, isShared: true })).rejects.toEqual(notAFolder);
        writeFileSync(join(dir, 'old-file'), '');
        mkdirSync(join(theirs, 'page2', 'full'), { recursive: true });
        writeFileSync(join(source, 'page2'), 'a file');
        await expect(remote.copyTo(source, theirs, { keepExtra: true, isShared: true })).rejects.toEqual(notAFolder);
        expect([existsSync(join(theirs, 'big', 'old')), existsSync(join(theirs, 'page2', 'full'))]).toEqual([true, true]);
      } finally {
        await host.stop();
        await killProcessesOf(dir);
      }
    });
  });
});
