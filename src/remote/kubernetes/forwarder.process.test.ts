import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { killProcessesOf, processesOf } from '../../../test/support/leaks.ts';
import { ScriptedApiServer, sendJson } from '../../../test/support/scripted-api-server.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths, type HomePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { tunnelCases, type TunnelWorld } from '../tunnel-conformance.ts';
import { Tunnels, type TunnelCarrier } from '../tunnels.ts';
import { ForwarderLink } from './forwarder-link.ts';

afterEach(() => vi.unstubAllEnvs());

const kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  // No program listens on this port.
  clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
  contexts: [{ name: 'away', context: { cluster: 'c' } }],
};

/** A home whose only Kubernetes cluster does not answer. */
async function withHome(use: (paths: HomePaths, tunnelsOf: (pod: string) => Tunnels) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    writeFileSync(join(dir, 'kubeconfig'), JSON.stringify(kubeconfig));
    vi.stubEnv('KUBECONFIG', join(dir, 'kubeconfig'));
    try {
      await use(paths, (name) => new Tunnels(new ForwarderLink(paths, 'away', systemClock).carrier({ namespace: 'default', name })));
    } finally {
      await killProcessesOf(paths.home);
    }
  });
}

const forwarders = (paths: HomePaths): readonly number[] =>
  processesOf(paths.home)
    .filter(({ command }) => command.includes('kubernetes/forwarder'))
    .map(({ pid }) => pid);

const noForwarder = (paths: HomePaths): Promise<unknown> => waitFor('the forwarder to end', () => forwarders(paths).length === 0);

test("a tunnel's socket has mode 0600, and a failed connection ends without a byte", () =>
  withHome(async (_paths, tunnelsOf) => {
    const tunnels = tunnelsOf('pod');
    const socket = await tunnels.open(8080);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    const client = connect({ path: socket });
    client.write('GET / HTTP/1.1\r\n\r\n');
    expect(await buffer(client)).toHaveLength(0);
    await tunnels.close();
  }));

test('concurrent clients start one forwarder, which exits after the last tunnel closes', () =>
  withHome(async (paths, tunnelsOf) => {
    const pods = ['one', 'two', 'three'].map(tunnelsOf);
    const sockets = await Promise.all(pods.flatMap((tunnels) => [tunnels.open(8080), tunnels.open('/run/some.sock')]));
    expect(new Set(sockets).size).toBe(6);
    await waitFor('one forwarder', () => forwarders(paths).length === 1);
    const [last, ...others] = pods;
    for (const tunnels of others) await tunnels.close();
    expect(sockets.map((socket) => existsSync(socket))).toEqual([true, true, false, false, false, false]);
    expect(forwarders(paths)).toHaveLength(1);
    await last?.close();
    await noForwarder(paths);
  }));

test('a later client finds the tunnels and reopens them after the forwarder was killed', () =>
  withHome(async (paths, tunnelsOf) => {
    const socket = await tunnelsOf('pod').open(8080);
    const [pid = 0] = forwarders(paths);
    process.kill(pid, 'SIGKILL');
    await waitFor('the killed forwarder to end', () => !forwarders(paths).includes(pid));
    const later = tunnelsOf('pod');
    later.keep();
    await waitFor('another forwarder', () => forwarders(paths).length === 1 && !forwarders(paths).includes(pid));
    expect(await later.open(8080)).toBe(socket);
    expect(await buffer(connect({ path: socket }))).toHaveLength(0);
    await later.close();
    await noForwarder(paths);
  }));

test('the forwarder exits when its home is removed', () =>
  withHome(async (paths, tunnelsOf) => {
    await tunnelsOf('pod').open(8080);
    rmSync(paths.home, { recursive: true, force: true });
    await expect(noForwarder(paths)).resolves.toBeDefined();
  }));

test('a context missing from the kubeconfig ends connections, not the forwarder', () =>
  withHome(async (paths) => {
    const tunnels = new Tunnels(new ForwarderLink(paths, 'no-such-context', systemClock).carrier({ namespace: 'd', name: 'p' }));
    const socket = await tunnels.open(1);
    for (let round = 0; round < 2; round += 1) expect(await buffer(connect({ path: socket }))).toHaveLength(0);
    expect(forwarders(paths)).toHaveLength(1);
    await tunnels.close();
  }));

/** The port of the pod whose program returns what it receives. */
const echoPort = 8080;

/** Forwards to ports of pods as kubelets do: each of the two channels begins with the port. */
function serveForward(socket: WebSocket, url: URL): void {
  const port = Number(url.searchParams.get('ports'));
  for (const channel of [0, 1]) socket.send(Buffer.of(channel, port & 0xff, port >> 8));
  if (port === echoPort) socket.on('message', (data: Buffer) => socket.send(data));
  else {
    socket.send(Buffer.concat([Buffer.of(1), Buffer.from('connection refused')]));
    socket.close();
  }
}

/** A pod of a Kubernetes cluster whose API server forwards ports. */
async function withPod(use: (world: TunnelWorld) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    const pod = { namespace: 'default', name: 'pod' };
    const server = await ScriptedApiServer.start((_request, response) => sendJson(response, { metadata: pod }));
    server.onSocket = serveForward;
    vi.stubEnv('KUBECONFIG', server.writeKubeconfig());
    const carrier = (): TunnelCarrier => new ForwarderLink(paths, 'test', systemClock).carrier(pod);
    const killHolders = (): Promise<void> => killProcessesOf(paths.home);
    try {
      await use({ carrier, echoPort, deadPort: 9, killHolders, stopMachine: () => server.stop(), machineName: /test/ });
    } finally {
      await new Tunnels(carrier()).close();
      await killHolders();
    }
  });
}

test.for(tunnelCases)('to a pod: $name', ({ run }) => withPod((world) => expect(run(world)).resolves.toBeUndefined()));
