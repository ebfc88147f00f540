import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { Remote } from '../../src/remote/remote.ts';
import { dialReplica } from '../../src/shared/system/dial.ts';
import { waitFor } from '../support/wait-for.ts';
import type { TestSshHost } from '../testbed/hosts/test-hosts.ts';
import { describeSshHosts, nodeBinary, openRemote, remoteAt, signalSsh, sshProcessesOf, withHome, withRemote } from './support.ts';

const port = 8080;

/**
 * Starts a server that answers each connection with `hello`, by default on loopback only. A probe may hang up before
 * the answer.
 */
async function serve(remote: Remote, address = '127.0.0.1'): Promise<void> {
  const program = `require('net').createServer((s) => s.on('error', () => {}).end('hello')).listen(${port}, '${address}')`;
  await remote.exec(['/usr/local/bin/node', '-e', program], { detached: true });
}

async function answerOf(remote: Remote): Promise<string> {
  const address = await remote.address(port);
  return (await buffer(await dialReplica(address, { timeoutMs: 3_000 }))).toString();
}

/** Returns the answer at a forwarded path, without any call of the remote. */
async function answerAt(path: string): Promise<string> {
  try {
    return (await buffer(await dialReplica({ kind: 'forward', path, port }, { timeoutMs: 3_000 }))).toString();
  } catch {
    return '';
  }
}

async function stopServers(host: TestSshHost): Promise<void> {
  await host.exec('sh', '-c', 'pkill -f "[c]reateServer" || true');
}

describeSshHosts('SSH connections that break', (hostOf) => {
  test('a follower gets every byte once, although the machine loses its connections', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote, paths) => {
      const file = `${remote.baseDir}/log`;
      const script = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo "line $i" >> "$1"; sleep 0.05; done';
      await remote.exec(['sh', '-c', script, 'sh', file], { detached: true });
      const stop = new AbortController();
      const chunks: Buffer[] = [];
      const text = (): string => Buffer.concat(chunks).toString();
      const following = (async () => {
        for await (const chunk of remote.follow(file, 5, stop.signal)) chunks.push(chunk);
      })();
      await waitFor('some lines', () => text().includes('line 20\n'));
      await host.cut();
      signalSsh(paths.home);
      await host.heal();
      await waitFor('more lines', () => text().includes('line 100\n'));
      signalSsh(paths.home);
      await waitFor('the last line', () => text().includes('line 400\n'));
      stop.abort();
      await following;
      expect(text()).toBe(
        Array.from({ length: 400 }, (_, index) => `line ${index + 1}\n`)
          .join('')
          .slice(5),
      );
    });
  });

  test('a detached program continues when every connection is gone', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote, paths) => {
      const file = `${remote.baseDir}/beats`;
      await remote.exec(['sh', '-c', 'while :; do echo beat >> "$1"; sleep 0.1; done', 'sh', file], { detached: true });
      signalSsh(paths.home);
      await host.exec('sh', '-c', 'pkill -f "^sshd(-session)?: ubuntu" || true');
      const size = async (): Promise<number> => ((await remote.readFile(file)) ?? '').length;
      const before = await waitFor('a beat', async () => (await size()) || undefined);
      await waitFor('another beat', async () => (await size()) > before);
      expect(sshProcessesOf(paths.home).length).toBeGreaterThan(0);
      await host.exec('sh', '-c', 'pkill -f "[e]cho beat" || true');
    });
  });

  test('a tunnel is private, keeps its path, and is restored by itself', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(
      host,
      async (remote, paths) => {
        await serve(remote);
        await waitFor('an answer', async () => (await answerOf(remote)) === 'hello');
        const address = await remote.address(port);
        if (address.kind !== 'forward') throw new Error(`a forward, not ${address.kind}`);
        expect(statSync(address.path).mode & 0o777).toBe(0o600);
        signalSsh(paths.home);
        await waitFor('an answer again', async () => (await answerAt(address.path)) === 'hello');
        expect(await remote.address(port)).toEqual(address);

        await remote.close();
        expect(existsSync(address.path)).toBe(false);
        await stopServers(host);
      },
      { address: { direct: 'never' } },
    );
  });

  test('a tunnel outlives its process, and the next user of the machine keeps it', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote, paths) => {
      await serve(remote);
      const program = join(import.meta.dirname, 'open-tunnel.ts');
      const args = [program, paths.home, JSON.stringify(host.target()), remote.baseDir, String(port)];
      const { stdout } = await promisify(execFile)(nodeBinary, args);
      const { path } = JSON.parse(stdout);
      await waitFor('an answer', async () => (await answerAt(path)) === 'hello');
      signalSsh(paths.home);
      // A command that begins before they have ended breaks with them.
      await waitFor('the end of the connections', () => sshProcessesOf(paths.home).length === 0);
      expect(await answerAt(path)).toBe('');
      await remote.exec(['true']);
      await waitFor('an answer again', async () => (await answerAt(path)) === 'hello');
      await stopServers(host);
    });
  });

  test('a rebooted machine works again, and so does the tunnel to its port', async () => {
    const host = await hostOf('rebooted', { node: nodeBinary });
    await withRemote(
      host,
      async (remote) => {
        await serve(remote);
        await waitFor('an answer', async () => (await answerOf(remote)) === 'hello');
        const address = await remote.address(port);
        if (address.kind !== 'forward') throw new Error(`a forward, not ${address.kind}`);
        await host.reboot();
        await waitFor('work to be possible', async () => (await remote.exec(['true']).catch(() => undefined))?.exitCode === 0);
        await serve(remote);
        await waitFor('an answer over the same path', async () => (await answerAt(address.path)) === 'hello');
        expect(await remote.address(port)).toEqual(address);
      },
      { address: { direct: 'never' } },
    );
  });

  test('an unreachable machine is detected, also during a command, and recovers by itself', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote) => {
      await remote.exec(['true']);
      const running = remote.exec(['sleep', '300']);
      await host.cut();
      await expect(running).rejects.toMatchObject({ code: 'SVC_SSH', kind: 'transient' });
      await expect(remote.readFile('/etc/hostname')).rejects.toMatchObject({ code: 'SVC_SSH' });
      await host.heal();
      expect(await remote.readFile('/etc/hostname')).toBe('main\n');
    });
  });

  test('calls to a paused machine fail in time, and succeed after it resumes', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote) => {
      await remote.exec(['true']);
      await host.pause();
      try {
        await expect(remote.readFile('/etc/hostname')).rejects.toMatchObject({ code: 'SVC_SSH' });
      } finally {
        await host.resume();
      }
      expect(await remote.readFile('/etc/hostname')).toBe('main\n');
    });
  });

  test('a connection whose control process hangs is replaced', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote, paths) => {
      await remote.exec(['true']);
      signalSsh(paths.home, 'SIGSTOP');
      await expect(remote.exec(['true'])).rejects.toMatchObject({ code: 'SVC_SSH' });
      expect((await remote.exec(['echo', 'again'])).stdout).toBe('again\n');
    });
  });

  test('a killed machine fails a call in time, a cancelled call fails at once', async () => {
    const host = await hostOf('killed');
    await withRemote(host, async (remote) => {
      await host.kill();
      const stop = new AbortController();
      const cancelled = remote.exec(['true'], { signal: stop.signal });
      stop.abort();
      await expect(cancelled).rejects.toMatchObject({ name: 'AbortError' });
      await expect(remote.exec(['true'])).rejects.toMatchObject({ code: 'SVC_SSH', message: expect.stringContaining('killed') });
      await host.start();
      expect((await remote.exec(['hostname'])).stdout).toBe('killed\n');
    });
  });

  test.for([
    ['150 ms away', { delayMs: 75 }],
    ['over a line that loses one packet in twenty', { delayMs: 5, lossPercent: 5 }],
  ] as const)('calls succeed %s', async ([name, shape]) => {
    const host = await hostOf('shaped', { cable: true });
    await host.shape(shape);
    try {
      await withRemote(host, async (remote) => {
        const content = `${name}\n`.repeat(20_000);
        await Promise.all([1, 2, 3, 4, 5].map((one) => remote.writeFile(`${remote.baseDir}/${one}`, content)));
        expect(await remote.readFile(`${remote.baseDir}/3`)).toBe(content);
        await remote.copyTo(import.meta.dirname, `${remote.baseDir}/copy`);
        expect((await remote.exec(['ls', `${remote.baseDir}/copy`])).stdout).toContain('faults.test.ts');
      });
    } finally {
      await host.shape({});
    }
  });

  test('the address is direct where the port is open, and a tunnel otherwise', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withRemote(host, async (remote) => {
      await serve(remote, '0.0.0.0');
      await waitFor('a direct way', async () => (await remote.address(port)).kind === 'tcp');
      expect(await answerOf(remote)).toBe('hello');
      await host.firewall(port, 'drop');
      expect(await remote.address(port)).toMatchObject({ kind: 'forward' });
      expect(await answerOf(remote)).toBe('hello');
      await host.firewall(port, 'open');
      await stopServers(host);
    });
  });

  test('homes and processes share nothing; one home shares its connections', async () => {
    const host = await hostOf('main', { node: nodeBinary });
    await withHome(host, async (paths) => {
      const remotes = await Promise.all([1, 2, 3, 4].map(() => openRemote(paths, host)));
      await Promise.all(remotes.flatMap((remote) => Array.from({ length: 6 }, () => remote.exec(['true']))));
      expect(readdirSync(join(paths.runtimeDir, 's')).filter((name) => name.endsWith('.pid'))).toHaveLength(1);
      const again = remoteAt(paths, host, '/home/ubuntu');
      expect((await again.exec(['pwd'])).stdout).toBe('/home/ubuntu\n');
      expect(readFileSync(join(paths.sshDir, 'known', readdirSync(join(paths.sshDir, 'known'))[0] ?? ''), 'utf8')).toContain('ssh-ed25519');
    });
  });
});
