import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endSshConnections } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { SvcError } from '../../src/shared/errors.ts';
import { waitFor } from '../support/wait-for.ts';
import { describeSshHosts, openRemote, withHome, withRemote } from './support.ts';

function makeKey(path: string): string {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  return path;
}

/** Arguments of all processes. */
const wordsOfProcesses = `for p in /proc/[0-9]*; do tr '\\0' ' ' < "$p/cmdline"; done 2> /dev/null; true`;

/**
 * Variables of this machine's own processes. The test hosts' processes are visible as well, and one of them
 * legitimately has the secret.
 */
const variablesOfOurs = `own=$(readlink /proc/self/ns/pid)
for p in /proc/[0-9]*; do [ "$(readlink "$p/ns/pid")" != "$own" ] || tr '\\0' '\\n' < "$p/environ"; done 2> /dev/null; true`;

describeSshHosts('SSH hosts that refuse', (hostOf) => {
  test('errors distinguish a wrong key from an unreachable host, each with a remedy', async () => {
    const host = await hostOf('main');
    await withHome(host, async (paths) => {
      const wrong = makeKey(join(paths.home, 'wrong'));
      const remote = await openRemote(paths, host, { target: { identityFile: wrong } });
      await expect(remote.exec(['true'])).rejects.toMatchObject({
        code: 'SVC_CREDENTIALS',
        message: `The machine main does not let the user ubuntu in with ${wrong}.`,
        hint: expect.stringContaining(`ssh -i ${wrong} ubuntu@${host.ip}`),
      });
      const missing = await openRemote(paths, host, { target: { identityFile: '/no/such/key' } });
      await expect(missing.connect()).rejects.toMatchObject({
        code: 'SVC_CREDENTIALS',
        message: expect.stringContaining('does not exist'),
      });
      const garbage = join(paths.home, 'garbage');
      writeFileSync(garbage, 'no key\n', { mode: 0o600 });
      const broken = await openRemote(paths, host, { target: { identityFile: garbage } });
      await expect(broken.connect()).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
    });
  });

  test('a changed host key is refused with both fingerprints, until it is forgotten', async () => {
    const host = await hostOf('changing');
    await withHome(host, async (paths) => {
      const remote = await openRemote(paths, host);
      await remote.exec(['true']);
      const fingerprint = async (): Promise<string> =>
        (await host.exec('ssh-keygen', '-lf', '/etc/ssh/ssh_host_ed25519_key.pub')).split(' ')[1] ?? '';
      const before = await fingerprint();
      await host.rekey();
      // Simulates a reinstalled machine: connections to the former one are gone.
      await endSshConnections(host.target(), paths, systemClock);
      await host.reboot();
      const after = await fingerprint();
      expect(after).not.toBe(before);
      const failure = await remote.exec(['true']).catch((error: unknown) => error);
      if (!(failure instanceof SvcError)) throw new Error('the machine was let through');
      expect(failure.code).toBe('SVC_HOST_KEY');
      expect(failure.message).toContain(before);
      expect(failure.message).toContain(after);
      const [known = ''] = readdirSync(join(paths.sshDir, 'known'));
      expect(failure.hint).toContain(join(paths.sshDir, 'known', known));
      await remote.forget();
      expect((await remote.exec(['echo', 'in'])).stdout).toBe('in\n');
    });
  });

  test('a host with configured keys is accepted only with one of them', async () => {
    const host = await hostOf('main');
    const right = (await host.exec('cat', '/etc/ssh/ssh_host_ed25519_key.pub')).trim();
    await withHome(host, async (paths) => {
      const wrong = readFileSync(`${makeKey(join(paths.home, 'other'))}.pub`, 'utf8').trim();
      const refused = await openRemote(paths, host, { target: { hostKeys: [wrong] } });
      await expect(refused.connect()).rejects.toMatchObject({
        code: 'SVC_HOST_KEY',
        hint: expect.stringContaining('give it in place of the old one'),
      });
      const known = await openRemote(paths, host, { target: { hostKeys: [wrong, right], name: 'known' } });
      await known.connect();
      await known.forget();
    });
  });

  test("an exit code of 255 is reported as the command's own", async () => {
    await withRemote(await hostOf('main'), async (remote) => {
      expect((await remote.exec(['sh', '-c', 'exit 255'])).exitCode).toBe(255);
    });
  });

  test('a full disk is reported as such, and the existing file stays', async () => {
    const host = await hostOf('full', { diskMb: 8 });
    await withHome(host, async (paths) => {
      const remote = await openRemote(paths, host);
      await remote.writeFile(`${remote.baseDir}/file`, 'before');
      const big = 'x'.repeat(12_000_000);
      await expect(remote.writeFile(`${remote.baseDir}/file`, big)).rejects.toMatchObject({
        code: 'SVC_NO_SPACE',
        message: expect.stringContaining('full'),
      });
      expect(await remote.readFile(`${remote.baseDir}/file`)).toBe('before');
      writeFileSync(join(paths.home, 'big'), big);
      await expect(remote.copyTo(join(paths.home, 'big'), `${remote.baseDir}/big`)).rejects.toMatchObject({ code: 'SVC_NO_SPACE' });
    });
  });

  test('secrets are in the arguments of no process, on either machine', async () => {
    const host = await hostOf('main');
    await withRemote(host, async (remote) => {
      const secret = `secret-${process.hrtime.bigint()}`;
      const running = remote.exec(['sh', '-c', 'cat > /dev/null; echo up > "$1"; sleep 300', 'sh', `${remote.baseDir}/up`], {
        env: { SECRET: secret },
        input: secret,
        timeoutMs: 240_000,
      });
      await waitFor('the command', () => remote.readFile(`${remote.baseDir}/up`));
      await remote.writeFile(`${remote.baseDir}/file`, secret);
      // Compared in the test: a failed assertion would print the variables of all processes.
      expect((await host.exec('sh', '-c', wordsOfProcesses)).includes(secret)).toBe(false);
      expect(execFileSync('sh', ['-c', wordsOfProcesses], { encoding: 'utf8' }).includes(secret)).toBe(false);
      expect(execFileSync('sh', ['-c', variablesOfOurs], { encoding: 'utf8', maxBuffer: 1e9 }).includes(secret)).toBe(false);
      // The command reports that it is up shortly before it sleeps.
      const end = () => host.exec('pkill', '-x', 'sleep').catch(() => undefined);
      await waitFor('its sleep', async () => (await end()) !== undefined);
      await running;
    });
  });

  test("the caller's locale does not reach the remote machine", async () => {
    await withRemote(await hostOf('main'), async (remote) => {
      const before = process.env['LC_ALL'];
      process.env['LC_ALL'] = 'xx_XX';
      try {
        expect((await remote.exec(['env'])).stdout).not.toContain('xx_XX');
      } finally {
        if (before === undefined) delete process.env['LC_ALL'];
        else process.env['LC_ALL'] = before;
      }
    });
  });

  test('a host behind a jump host is reachable through it', async () => {
    const [host, jump] = [await hostOf('main'), await hostOf('jump')];
    await withHome(host, async (paths) => {
      const remote = await openRemote(paths, host, { target: { proxyJump: `${jump.user}@${jump.ip}:22`, name: 'behind' } });
      expect((await remote.exec(['sh', '-c', 'echo "$SSH_CONNECTION"'])).stdout).toContain(jump.ip);
      await remote.forget();
    });
  });
});
