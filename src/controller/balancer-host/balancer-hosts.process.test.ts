import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, get, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aBalancerReplica, ControlLink } from '../../../test/support/balancer.ts';
import { aHostedService, hostAccess, RunningHost } from '../../../test/support/balancer-hosts.ts';
import { selfSigned } from '../../../test/support/certificate.ts';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { balancersOf } from '../../../test/support/processes.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths, servicePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/prepare-home.ts';
import { BalancerFleet } from '../service/balancer-fleet.ts';
import { HostGroup } from './host-group.ts';
import { HostedServices } from './hosted-services.ts';
import { askHost, dialHosted, openHostLink } from './host-link.ts';
import { answersProbe } from './peers.ts';

const log = pino({ level: 'silent' });
const hosts: RunningHost[] = [];
const ends: (() => void)[] = [];

/** Runs `use` with a folder for hosts; whatever becomes of it, nothing that was started there goes on, or writes into it while it is removed. */
async function withHosts(use: (dir: string) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    try {
      await use(dir);
    } finally {
      for (const end of ends.splice(0)) end();
      hosts.splice(0);
      await killProcessesOf(dir);
    }
  });
}

function startHost(dir: string, last: number, port: number): RunningHost {
  const host = new RunningHost(dir, last, port);
  hosts.push(host);
  host.start();
  return host;
}

/** A replica that says its number. */
async function replica(id: number): Promise<number> {
  const server: Server = createServer((_, response) => response.end(`replica ${id}`));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => (server.closeAllConnections(), server.close()));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function ask(host: string, port: number, path = '/', timeout = 5_000): Promise<string> {
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

/** Whether a connection is accepted there. */
async function isListening(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  const answer = await promise;
  socket.destroy();
  return answer;
}

function group(dir: string, term = 1): HostGroup {
  const made = new HostGroup(hostAccess(dir, term), log);
  ends.push(() => made.close());
  made.setMembers(hosts.map(({ member }) => member));
  return made;
}

function fleet(dir: string, term = 1, heard: number[] = []): BalancerFleet {
  const made = new BalancerFleet(
    { clock: systemClock, log, dial: dialHosted(hostAccess(dir, term), 'k1') },
    { arrivals: (count) => void heard.push(count), suspect: () => undefined },
  );
  ends.push(() => made.close());
  made.setMembers(hosts.map(({ member }) => member));
  return made;
}

const listening = (made: HostGroup, count: number): Promise<boolean> =>
  waitFor('endpoints to listen', () => made.at('k1').filter(({ state }) => state === 'listening').length === count);

test('two hosts serve one endpoint, and one that dies costs no request at the other one', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const [first, second] = [startHost(dir, 2, control), startHost(dir, 3, control)];
    await waitFor('the hosts', async () => (await answersProbe(first.member, systemClock)) && answersProbe(second.member, systemClock));
    expect(await ask('127.0.0.2', control, '/readyz')).toBe('503 not ready\n');
    const told = group(dir);
    told.serve([aHostedService(port)]);
    await listening(told, 2);
    expect(await ask('127.0.0.2', control, '/readyz')).toBe('200 ok\n');

    const heard: number[] = [];
    const balancers = fleet(dir, 1, heard);
    const replicas = [aBalancerReplica(await replica(1), 1), aBalancerReplica(await replica(2), 2)];
    balancers.send({ type: 'replicas', epoch: 'e', revision: 1, replicas });
    expect(await balancers.applied(1, 10_000)).toBe(true);
    // What arrives before the first report is no news to a reconciler.
    await waitFor('a report of each', () => balancers.view.reports > 0);

    const answers: string[] = [];
    const before: string[] = [];
    for (let turn = 0; turn < 20; turn += 1) before.push(await ask('127.0.0.2', port), await ask('127.0.0.3', port));
    expect(new Set(before)).toEqual(new Set(['200 replica 1', '200 replica 2']));
    await waitFor('all arrivals', () => heard.reduce((sum, count) => sum + count, 0) === 40, { describe: () => heard });

    // As when its machine is lost: the host and its balancer end in the middle of everything.
    first.signal(
      'SIGKILL',
      balancersOf(first.home).map(({ pid }) => pid),
    );
    for (let turn = 0; turn < 50; turn += 1) answers.push(await ask('127.0.0.3', port));
    expect(answers.filter((answer) => !answer.startsWith('200 '))).toEqual([]);
    // The one that is gone holds nothing up.
    balancers.send({ type: 'replicas', epoch: 'e', revision: 2, replicas: replicas.slice(0, 1) });
    expect(await balancers.applied(2, 10_000)).toBe(true);
    expect(balancers.view.connected).toBe(true);

    // It comes back with what it was told before, and gets the newest set.
    first.start();
    await waitFor('the host that came back', async () => (await ask('127.0.0.2', port)) === '200 replica 1');
    await listening(told, 2);
    balancers.send({ type: 'replicas', epoch: 'e', revision: 3, replicas: replicas.slice(1) });
    await waitFor(
      'the newest set at both',
      async () => (await ask('127.0.0.2', port)) === '200 replica 2' && (await ask('127.0.0.3', port)) === '200 replica 2',
    );
    for (const host of [first, second]) expect(host.log).not.toContain('Warning');
  }),
);

test('a host knows the replicas once each of its balancers has heard of them, be there any or not', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const paths = homePaths(dir, process.getuid?.() ?? 0);
    prepareHome(paths);
    const services = new HostedServices({ paths, address: '127.0.0.1', clock: systemClock, log }, () => undefined);
    services.apply([aHostedService(await freePort())]);
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
  }),
);

test('what is served no more, or differently, is put away, and keys are for the host alone', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const host = startHost(dir, 2, control);
    const told = group(dir);
    const { key, cert } = selfSigned();
    told.serve([aHostedService(port, { tls: { key, cert } })]);
    await listening(told, 1);
    const folder = join(host.home, 'services', 'k1');
    expect(readFileSync(join(folder, 'key.pem'), 'utf8')).toBe(key);
    expect(statSync(join(folder, 'key.pem')).mode & 0o777).toBe(0o600);

    expect(await ask('127.0.0.2', port)).not.toContain('503');

    told.serve([aHostedService(port)]);
    await waitFor('the endpoint without TLS', async () => (await ask('127.0.0.2', port)).startsWith('503'));
    expect(existsSync(join(folder, 'key.pem'))).toBe(false);

    told.serve([{ key: 'k1', config: null, tls: null }]);
    expect(await ask('127.0.0.2', port)).toContain('503');

    told.serve([]);
    await waitFor('the end of the balancer', () => balancersOf(host.home).length === 0);
    await waitFor('the end of its files', () => !told.at('k1').some(({ state }) => state !== undefined));
  }),
);

test('without the token nobody is heard, and who led before is not heard any more', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const { member } = startHost(dir, 2, control);
    await waitFor('the host', () => answersProbe(member, systemClock));
    await expect(openHostLink(member, { key: Buffer.alloc(32), term: 9, clock: systemClock })).rejects.toMatchObject({
      code: 'SVC_ENDPOINT_DOWN',
    });
    const former = group(dir, 1);
    former.serve([aHostedService(port)]);
    await listening(former, 1);
    const attached = fleet(dir, 1);
    await waitFor('the former leader to be connected', () => attached.view.connected);

    const { socket } = await openHostLink(member, hostAccess(dir, 2));
    ends.push(() => socket.destroy());

    await waitFor('the former leader to be cut', () => !attached.view.connected && former.at('k1')[0]?.state === undefined);
    await expect(askHost(member, hostAccess(dir, 1), { type: 'attach', key: 'k1' })).rejects.toMatchObject({
      code: 'SVC_NOT_LEADER',
      message: 'The balancer host host-2 refuses: a controller with term 2 leads by now',
    });
  }),
);

async function wholeText(stream: AsyncIterable<Buffer>): Promise<string> {
  let all = '';
  for await (const piece of stream) all += piece.toString('utf8');
  return all;
}

test('its metrics and logs can be read, and what it is asked wrongly is said', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const { member, home } = startHost(dir, 2, control);
    const told = group(dir);
    told.serve([aHostedService(port)]);
    await listening(told, 1);
    writeFileSync(join(home, 'services', 'k1', 'access.log'), 'one\ntwo\n');
    const signal = new AbortController().signal;
    expect(await wholeText(await told.ask(member, { type: 'metrics', key: 'k1' }, signal))).toContain('# TYPE ');
    expect(await wholeText(await told.ask(member, { type: 'log', key: 'k1', tail: 1, follow: false }, signal))).toBe('two\n');
    await expect(told.ask(member, { type: 'metrics', key: 'k9' }, signal)).rejects.toThrow('it serves no service k9');
  }),
);

test('a host that is told to end lets requests end and accepts no more', { timeout: 60_000 }, () =>
  withHosts(async (dir) => {
    const [control, port] = [await freePort('0.0.0.0'), await freePort('0.0.0.0')];
    const host = startHost(dir, 2, control);
    const told = group(dir);
    told.serve([aHostedService(port)]);
    await listening(told, 1);
    const held: ServerResponse[] = [];
    const slow = createServer((_, response) => void held.push(response));
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    ends.push(() => (slow.closeAllConnections(), slow.close()));
    const address = slow.address();
    const balancers = fleet(dir);
    const replicas = [aBalancerReplica(typeof address === 'object' && address !== null ? address.port : 0)];
    balancers.send({ type: 'replicas', epoch: 'e', revision: 1, replicas });
    await balancers.applied(1, 10_000);
    const answer = ask('127.0.0.2', port, '/', 60_000);
    await waitFor('the request to be under way', () => held.length === 1);
    const exited = host.exited;
    host.signal('SIGTERM');
    await waitFor('the end of listening', async () => !(await isListening('127.0.0.2', port)));
    for (const response of held) response.end('late');
    expect(await answer).toBe('200 late');
    expect(await exited).toEqual([0, null]);
    expect(balancersOf(host.home)).toEqual([]);
  }),
);
