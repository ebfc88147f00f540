import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, get, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aBalancerReplica, ControlLink } from '../../../test/support/balancer.ts';
import { aProxiedService, edgeProxyAccess, RunningEdgeProxy } from '../../../test/support/edge-proxies.ts';
import { selfSigned } from '../../../test/support/certificate.ts';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { balancersOf, standbysOf } from '../../../test/support/processes.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { BalancerFleet } from '../service/balancer-fleet.ts';
import { EdgeProxyGroup } from './edge-proxy-group.ts';
import { HostedServices } from './hosted-services.ts';
import { requestEdgeProxy, dialEdgeProxy, connectEdgeProxy } from './edge-proxy-connection.ts';
import { askReadiness } from './health-checks.ts';

const log = pino({ level: 'silent' });
const proxies: RunningEdgeProxy[] = [];
const ends: (() => void)[] = [];

/**
 * Runs `use` with a folder for edge proxies. Afterwards, even on failure, everything it started is ended before the
 * folder is removed.
 */
async function withEdgeProxies(use: (dir: string) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    try {
      await use(dir);
    } finally {
      for (const end of ends.splice(0)) end();
      proxies.splice(0);
      await killProcessesOf(dir);
    }
  });
}

function startEdgeProxy(dir: string, last: number, port: number): RunningEdgeProxy {
  const proxy = new RunningEdgeProxy(dir, last, port);
  proxies.push(proxy);
  proxy.start();
  return proxy;
}

/** A replica that answers with its number. */
async function replica(id: number): Promise<number> {
  const server: Server = createServer((_, response) => response.end(`replica ${id}`));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => (server.closeAllConnections(), server.close()));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function ask(host: string, port: number, path = '/', timeout = 60_000): Promise<string> {
  return new Promise((resolve) => {
    const request = get({ host, port, path, agent: false, timeout }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve(`${response.statusCode} ${text}`));
      response.on('error', (error) => resolve(error.message));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', (error) => resolve(error.message));
  });
}

/** Whether the address accepts a connection. */
async function isListening(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  const answer = await promise;
  socket.destroy();
  return answer;
}

function group(dir: string, term = 1): EdgeProxyGroup {
  const made = new EdgeProxyGroup(edgeProxyAccess(dir, term), log);
  ends.push(() => made.close());
  made.setMembers(proxies.map(({ member }) => member));
  return made;
}

function fleet(dir: string, term = 1, arrivals: number[] = []): BalancerFleet {
  const made = new BalancerFleet({ clock: systemClock, log, dial: dialEdgeProxy(edgeProxyAccess(dir, term), 'k1') });
  ends.push(() => made.close());
  made.open({ arrivals: (count) => void arrivals.push(count), suspect: () => undefined, tlsChanged: () => undefined })(
    proxies.map(({ member }) => member),
  );
  return made;
}

const listening = (made: EdgeProxyGroup, count: number): Promise<boolean> =>
  waitFor('endpoints to listen', () => made.at('k1').filter(({ state }) => state === 'listening').length === count);

test('when one of two edge proxies dies, the other one fails no request', () =>
  withEdgeProxies(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const [first, second] = [startEdgeProxy(dir, 2, control), startEdgeProxy(dir, 3, control)];
    await waitFor(
      'the hosts',
      async () =>
        (await askReadiness(first.member, systemClock)) !== 'silent' && (await askReadiness(second.member, systemClock)) !== 'silent',
    );
    expect(await ask('127.0.0.2', control, '/readyz')).toBe('503 not ready\n');
    const proxyGroup = group(dir);
    proxyGroup.serve([aProxiedService(port)]);
    await listening(proxyGroup, 2);
    expect(await ask('127.0.0.2', control, '/readyz')).toBe('200 ok\n');

    const arrivals: number[] = [];
    const balancers = fleet(dir, 1, arrivals);
    const replicas = [aBalancerReplica(await replica(1), 1), aBalancerReplica(await replica(2), 2)];
    balancers.send({ type: 'replicas', epoch: 'e', revision: 1, replicas });
    expect(await balancers.applied(1, 60_000)).toBe(true);
    // A reconciler ignores what arrives before the first report.
    await waitFor('a report of each', () => balancers.view.reports > 0);

    const answers: string[] = [];
    const before: string[] = [];
    for (let turn = 0; turn < 20; turn += 1) before.push(await ask('127.0.0.2', port), await ask('127.0.0.3', port));
    expect(new Set(before)).toEqual(new Set(['200 replica 1', '200 replica 2']));
    await waitFor('all arrivals', () => arrivals.reduce((sum, count) => sum + count, 0) === 40, { describe: () => arrivals });

    // As when its machine is lost: the edge proxy, its balancer and its standby end in the middle of everything.
    first.signal(
      'SIGKILL',
      [...standbysOf(first.home), ...balancersOf(first.home)].map(({ pid }) => pid),
    );
    for (let turn = 0; turn < 50; turn += 1) answers.push(await ask('127.0.0.3', port));
    expect(answers.filter((answer) => !answer.startsWith('200 '))).toEqual([]);
    // The lost edge proxy must not delay the others.
    balancers.send({ type: 'replicas', epoch: 'e', revision: 2, replicas: replicas.slice(0, 1) });
    expect(await balancers.applied(2, 60_000)).toBe(true);
    expect(balancers.view.connected).toBe(true);

    // The edge proxy restarts with its stored assignment, and gets the newest set.
    first.start();
    await waitFor('the host that came back', async () => (await ask('127.0.0.2', port)) === '200 replica 1');
    await listening(proxyGroup, 2);
    balancers.send({ type: 'replicas', epoch: 'e', revision: 3, replicas: replicas.slice(1) });
    await waitFor(
      'the newest set at both',
      async () => (await ask('127.0.0.2', port)) === '200 replica 2' && (await ask('127.0.0.3', port)) === '200 replica 2',
    );
    for (const proxy of [first, second]) expect(proxy.log).not.toContain('Warning');
  }));

test('an edge proxy is informed once each balancer has a set, possibly empty', () =>
  withEdgeProxies(async (dir) => {
    const paths = homePaths(dir, process.getuid?.() ?? 0);
    prepareHome(paths);
    const services = new HostedServices({ paths, address: '127.0.0.1', clock: systemClock, log }, () => undefined);
    services.apply([aProxiedService(await freePort())]);
    try {
      await waitFor('its balancer to listen', () => services.isReady);
      expect(services.isInformed).toBe(false);
      const link = new ControlLink(servicePaths(paths, 'k1').balancerSocket);
      await link.setReplicas([]);
      expect(services.isInformed).toBe(true);
      link.close();
    } finally {
      await services.end();
    }
  }));

test('removed and changed services are cleaned up; private keys have mode 0600', () =>
  withEdgeProxies(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const proxy = startEdgeProxy(dir, 2, control);
    const proxyGroup = group(dir);
    const { key, cert } = selfSigned();
    proxyGroup.serve([aProxiedService(port, { tls: { key, cert } })]);
    await listening(proxyGroup, 1);
    const folder = join(proxy.home, 'services', 'k1');
    expect(readFileSync(join(folder, 'key.pem'), 'utf8')).toBe(key);
    expect(statSync(join(folder, 'key.pem')).mode & 0o777).toBe(0o600);

    expect(await ask('127.0.0.2', port)).not.toContain('503');

    proxyGroup.serve([aProxiedService(port)]);
    await waitFor('the endpoint without TLS', async () => (await ask('127.0.0.2', port)).startsWith('503'));
    expect(existsSync(join(folder, 'key.pem'))).toBe(false);

    proxyGroup.serve([{ key: 'k1', config: null, tls: null }]);
    expect(await ask('127.0.0.2', port)).toContain('503');

    proxyGroup.serve([]);
    await waitFor('the end of the balancer', () => balancersOf(proxy.home).length === 0);
    await waitFor('the end of its files', () => !proxyGroup.at('k1').some(({ state }) => state !== undefined));
  }));

test('clients without the token and a former leader are refused', () =>
  withEdgeProxies(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const { member } = startEdgeProxy(dir, 2, control);
    await waitFor('the host', async () => (await askReadiness(member, systemClock)) !== 'silent');
    await expect(connectEdgeProxy(member, { key: Buffer.alloc(32), term: 9, clock: systemClock })).rejects.toMatchObject({
      code: 'SVC_ENDPOINT_DOWN',
    });
    const former = group(dir, 1);
    former.serve([aProxiedService(port)]);
    await listening(former, 1);
    const attached = fleet(dir, 1);
    await waitFor('the former leader to be connected', () => attached.view.connected);

    const { socket } = await connectEdgeProxy(member, edgeProxyAccess(dir, 2));
    ends.push(() => socket.destroy());

    await waitFor('the former leader to be cut', () => !attached.view.connected && former.at('k1')[0]?.state === undefined);
    await expect(requestEdgeProxy(member, edgeProxyAccess(dir, 1), { type: 'attach', key: 'k1' })).rejects.toMatchObject({
      code: 'SVC_NOT_LEADER',
      message: 'The edge proxy host-2 refuses: a controller with term 2 leads by now',
    });
  }));

async function wholeText(stream: AsyncIterable<Buffer>): Promise<string> {
  let all = '';
  for await (const piece of stream) all += piece.toString('utf8');
  return all;
}

test('metrics and logs can be read; an invalid query fails with a reason', () =>
  withEdgeProxies(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const { member, home } = startEdgeProxy(dir, 2, control);
    const proxyGroup = group(dir);
    proxyGroup.serve([aProxiedService(port)]);
    await listening(proxyGroup, 1);
    writeFileSync(join(home, 'services', 'k1', 'access.log'), 'one\ntwo\n');
    const signal = new AbortController().signal;
    expect(await wholeText(await proxyGroup.ask(member, { type: 'metrics', key: 'k1' }, signal))).toContain('# TYPE ');
    expect(await wholeText(await proxyGroup.ask(member, { type: 'log', key: 'k1', tail: 1, follow: false }, signal))).toBe('two\n');
    await expect(proxyGroup.ask(member, { type: 'metrics', key: 'k9' }, signal)).rejects.toThrow('it serves no service k9');
  }));

test('an edge proxy that is terminated finishes its requests and accepts no new ones', () =>
  withEdgeProxies(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const proxy = startEdgeProxy(dir, 2, control);
    const proxyGroup = group(dir);
    proxyGroup.serve([aProxiedService(port)]);
    await listening(proxyGroup, 1);
    const held: ServerResponse[] = [];
    const slow = createServer((_, response) => void held.push(response));
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    ends.push(() => (slow.closeAllConnections(), slow.close()));
    const address = slow.address();
    const balancers = fleet(dir);
    const replicas = [aBalancerReplica(typeof address === 'object' && address !== null ? address.port : 0)];
    balancers.send({ type: 'replicas', epoch: 'e', revision: 1, replicas });
    expect(await balancers.applied(1, 60_000)).toBe(true);
    const answer = ask('127.0.0.2', port);
    await waitFor('the request to be under way', () => held.length === 1);
    const exited = proxy.exited;
    proxy.signal('SIGTERM');
    await waitFor('the end of listening', async () => !(await isListening('127.0.0.2', port)));
    for (const response of held) response.end('late');
    expect(await answer).toBe('200 late');
    expect(await exited).toEqual([0, null]);
    expect(balancersOf(proxy.home)).toEqual([]);
  }));
