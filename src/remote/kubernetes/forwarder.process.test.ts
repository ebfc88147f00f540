import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import { killProcessesOf, processesOf } from '../../../test/support/leaks.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths, type HomePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/prepare-home.ts';
import { ForwarderLink } from './forwarder-link.ts';
import { PodWays } from './pod-ways.ts';

afterEach(() => vi.unstubAllEnvs());

const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  // Nobody listens there.
  clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
  contexts: [{ name: 'away', context: { cluster: 'c' } }],
};

/** A home whose only cluster is away. */
async function withHome(use: (paths: HomePaths, waysOf: (pod: string) => PodWays) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    writeFileSync(join(dir, 'kubeconfig'), JSON.stringify(kubeconfig));
    vi.stubEnv('KUBECONFIG', join(dir, 'kubeconfig'));
    try {
      await use(paths, (name) => new PodWays(new ForwarderLink(paths, 'away', systemClock), 'away', { namespace: 'default', name }));
    } finally {
      await killProcessesOf(paths.home);
    }
  });
}

const forwarders = (paths: HomePaths): readonly number[] =>
  processesOf(paths.home)
    .filter(({ command }) => command.includes('kubernetes/forwarder'))
    .map(({ pid }) => pid);

const noForwarder = (paths: HomePaths): Promise<unknown> =>
  waitFor('the forwarder to end', () => forwarders(paths).length === 0, { timeoutMs: 20_000 });

test('a way is a socket for its owner alone; a connection that cannot be carried ends without a byte', () =>
  withHome(async (_paths, waysOf) => {
    const ways = waysOf('pod');
    const socket = await ways.open(8080);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    const client = connect({ path: socket });
    client.write('GET / HTTP/1.1\r\n\r\n');
    expect(await buffer(client)).toHaveLength(0);
    await ways.close();
  }));

test('several that ask at once get one forwarder, which goes with the last way', () =>
  withHome(async (paths, waysOf) => {
    const pods = ['one', 'two', 'three'].map(waysOf);
    const sockets = await Promise.all(pods.flatMap((ways) => [ways.open(8080), ways.open('/run/some.sock')]));
    expect(new Set(sockets).size).toBe(6);
    await waitFor('one forwarder', () => forwarders(paths).length === 1);
    const [last, ...others] = pods;
    for (const ways of others) await ways.close();
    expect(sockets.map((socket) => existsSync(socket))).toEqual([true, true, false, false, false, false]);
    expect(forwarders(paths)).toHaveLength(1);
    await last?.close();
    await noForwarder(paths);
  }));

test('whoever comes later finds the ways there, and brings them back when the forwarder was killed', () =>
  withHome(async (paths, waysOf) => {
    const socket = await waysOf('pod').open(8080);
    const [pid = 0] = forwarders(paths);
    process.kill(pid, 'SIGKILL');
    await waitFor('it to be gone', () => !forwarders(paths).includes(pid));
    const later = waysOf('pod');
    later.keep();
    await waitFor('another one', () => forwarders(paths).length === 1 && !forwarders(paths).includes(pid), { timeoutMs: 20_000 });
    expect(await later.open(8080)).toBe(socket);
    expect(await buffer(connect({ path: socket }))).toHaveLength(0);
    await later.close();
    await noForwarder(paths);
  }));

test('it ends when its home is gone', () =>
  withHome(async (paths, waysOf) => {
    await waysOf('pod').open(8080);
    rmSync(paths.home, { recursive: true, force: true });
    await expect(noForwarder(paths)).resolves.toBeDefined();
  }));

test('a context that is missing from the kubeconfig ends connections, not the forwarder', () =>
  withHome(async (paths) => {
    const ways = new PodWays(new ForwarderLink(paths, 'no-such-context', systemClock), 'no-such-context', { namespace: 'd', name: 'p' });
    const socket = await ways.open(1);
    for (let round = 0; round < 2; round += 1) expect(await buffer(connect({ path: socket }))).toHaveLength(0);
    expect(forwarders(paths)).toHaveLength(1);
    await ways.close();
  }));
