import { statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, ControlLink, RunningBalancer, runToExit, withBalancer } from '../../test/support/balancer.ts';
import { forwarder } from '../../test/support/forwarder.ts';
import { httpReplica, RawClient, refusingPort, withReplicas, type FakeReplica } from '../../test/support/raw-http.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { freePort } from '../../test/support/free-port.ts';

const named = (name: string): Promise<FakeReplica> => httpReplica((_, response) => response.end(name));

/** A replica that begins each response at once, and ends it when the test calls the stored function. */
function slowReplica(): { readonly held: readonly (() => void)[]; readonly replica: Promise<FakeReplica> } {
  const held: (() => void)[] = [];
  const replica = httpReplica((_, response) => {
    response.write('begun ');
    held.push(() => response.end('and ended'));
  });
  return { held, replica };
}

const answers = async (balancer: RunningBalancer, count = 10): Promise<ReadonlySet<string>> => {
  const seen = new Set<string>();
  for (let turn = 0; turn < count; turn += 1) seen.add(await (await fetch(balancer.url)).text());
  return seen;
};

test('after a kill and restart it serves the saved set without the reconciler', async () => {
  await withReplicas([named('a'), named('b')], async (a, b) => {
    if (a === undefined || b === undefined) return;
    await withTempHome(async (dir) => {
      // A port that the system does not assign to another process between the two.
      const config = balancerConfig(dir, { port: await freePort() });
      const first = await RunningBalancer.start(config);
      await first.link.setReplicas([aBalancerReplica(a.port, 1)]);
      await first.link.setReplicas([aBalancerReplica(a.port, 1), aBalancerReplica(b.port, 2)]);
      await first.stop();
      // The files that the killed process left, including its socket, do not prevent a start.
      const second = await RunningBalancer.start(config);
      try {
        expect(second.port).toBe(first.port);
        expect([...(await answers(second, 30))].toSorted()).toEqual(['a', 'b']);
      } finally {
        await second.stop();
      }
    });
  });
});

for (const [name, file] of [
  ['a damaged replica set is reported', '[{"id":1,"addr'],
  ['a balancer without a saved set reports no lack of replicas', undefined],
] as const) {
  test(`${name}: requests wait for the first set, or fail when it is empty`, async () => {
    await withReplicas([named('a')], async (a) => {
      if (a === undefined) return;
      for (const replicas of [[aBalancerReplica(a.port)], []]) {
        await withTempHome(async (dir) => {
          const config = balancerConfig(dir, { queue: { maxRequests: 10, maxBytes: 1_000, timeoutMs: 300_000, fromZero: false } });
          if (file !== undefined) writeFileSync(config.lastReplicasFile, file);
          const balancer = await RunningBalancer.start(config);
          try {
            expect(balancer.output.includes('cannot be read')).toBe(file !== undefined);
            const asked = fetch(balancer.url);
            await waitFor('it to wait', () => balancer.link.lastStats?.queued === 1);
            await balancer.link.setReplicas(replicas);
            expect((await asked).status).toBe(replicas.length > 0 ? 200 : 503);
          } finally {
            await balancer.stop();
          }
        });
      }
    });
  });
}

test('a busy port ends the process with code 4 and one clear line', async () => {
  await withReplicas([named('a')], async (a) => {
    if (a === undefined) return;
    await withTempHome(async (dir) => {
      const { code, output } = await runToExit(balancerConfig(dir, { port: a.port }));
      expect(code).toBe(4);
      expect(output.trim().split('\n')).toHaveLength(1);
      expect(output).toContain('another process has the port or the control socket of service chat');
    });
  });
});

test('the control socket of a living process stays untouched', async () => {
  await withTempHome(async (dir) => {
    const config = balancerConfig(dir);
    const living = createServer();
    await new Promise<void>((resolve) => {
      living.listen(config.controlSocket, () => resolve());
    });
    try {
      expect((await runToExit(config)).code).toBe(4);
      expect(statSync(config.controlSocket).isSocket()).toBe(true);
    } finally {
      living.close();
    }
  });
});

test('an invalid configuration ends the process with code 2', async () => {
  await withTempHome(async (dir) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a wrong configuration is the point
    const { code, output } = await runToExit(balancerConfig(dir, { policy: 'other' as 'least_load' }));
    expect([code, output.includes('has a bad policy')]).toEqual([2, true]);
  });
});

test('only the owner may use the control socket, and every client gets every report', async () => {
  await withBalancer([], async (balancer) => {
    expect(statSync(balancer.config.controlSocket).mode & 0o777).toBe(0o600);
    expect(balancer.link.of('hello')).toMatchObject([{ pid: balancer.pid, port: balancer.port }]);
    const second = new ControlLink(balancer.config.controlSocket);
    await fetch(balancer.url);
    await waitFor('stats at both', () => second.lastStats?.requestsTotal === 1 && balancer.link.lastStats?.requestsTotal === 1);
    second.close();
  });
});

test('an invalid command is reported and ignored', async () => {
  await withBalancer([], async (balancer) => {
    balancer.link.send('{"type":"replicas"}');
    balancer.link.send('nonsense');
    await balancer.link.setReplicas([]);
    await waitFor('the reports', () => balancer.output.split('Not a command').length === 3);
    expect((await fetch(balancer.url)).status).toBe(503);
  });
});

const command = (epoch: string, revision: number, replicas: readonly unknown[]): string =>
  JSON.stringify({ type: 'replicas', epoch, revision, replicas });

test('an older revision of the same epoch is ignored; another epoch starts over', async () => {
  await withReplicas([named('a')], async (a) => {
    if (a === undefined) return;
    await withBalancer([], async (balancer) => {
      balancer.link.send(command('e1', 5, [aBalancerReplica(a.port)]));
      balancer.link.send(command('e1', 4, []));
      balancer.link.send(command('e1', 5, [aBalancerReplica(a.port)]));
      await waitFor('both', () => balancer.link.of('applied').filter(({ epoch }) => epoch === 'e1').length === 2);
      expect((await fetch(balancer.url)).status).toBe(200);
      balancer.link.send(command('e2', 1, []));
      await waitFor('the new epoch', () => balancer.link.of('applied').some(({ epoch }) => epoch === 'e2'));
      expect((await fetch(balancer.url)).status).toBe(503);
    });
  });
});

test('a draining replica finishes its requests, gets no more, and idle connections close', async () => {
  const held: (() => void)[] = [];
  const slow = httpReplica((request, response) => {
    if (request.url === '/slow') held.push(() => response.end('slow'));
    else response.end('fast');
  });
  await withReplicas([slow, named('other')], async (draining, other) => {
    if (draining === undefined || other === undefined) return;
    await withBalancer([aBalancerReplica(draining.port, 1)], async (balancer) => {
      const stream = fetch(`${balancer.url}/slow`);
      await waitFor('the stream', () => held.length === 1);
      await fetch(balancer.url);
      expect(draining.connections.size).toBe(2);
      await balancer.link.setReplicas([aBalancerReplica(draining.port, 1, { state: 'draining' }), aBalancerReplica(other.port, 2)]);
      expect([...(await answers(balancer, 20))]).toEqual(['other']);
      await waitFor('the idle connection to go', () => draining.connections.size === 1);
      await waitFor('its count', () => balancer.link.lastStats?.inFlight['1'] === 1);
      // The replica is no longer in the set, but its request may still finish.
      await balancer.link.setReplicas([aBalancerReplica(other.port, 2)]);
      await waitFor('its count', () => balancer.link.lastStats?.inFlight['1'] === 1);
      held[0]?.();
      expect(await (await stream).text()).toBe('slow');
      await waitFor('no connection left', () => draining.connections.size === 0);
      await waitFor('no count left', () => balancer.link.lastStats?.inFlight['1'] === undefined);
    });
  });
});

test('a replica that returns at another address counts as another replica', async () => {
  await withReplicas([named('a'), named('b')], async (a, b) => {
    if (a === undefined || b === undefined) return;
    await withBalancer([aBalancerReplica(a.port, 1)], async (balancer) => {
      expect([...(await answers(balancer))]).toEqual(['a']);
      await balancer.link.setReplicas([aBalancerReplica(b.port, 1)]);
      expect([...(await answers(balancer))]).toEqual(['b']);
    });
  });
});

test('SIGTERM: no new connections, running requests finish, exit code 0', async () => {
  const { held, replica: slow } = slowReplica();
  await withReplicas([slow], async (replica) => {
    if (replica === undefined) return;
    await withBalancer([aBalancerReplica(replica.port)], async (balancer) => {
      const idle = new RawClient(balancer.port);
      const busy = new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
      await busy.until(/begun/);
      balancer.signal('SIGTERM');
      await idle.closed();
      await expect(fetch(balancer.url)).rejects.toThrow('fetch failed');
      held[0]?.();
      await busy.until(/and ended\r\n0\r\n\r\n$/);
      await busy.closed();
      busy.destroy();
      idle.destroy();
      expect(await balancer.exited).toBe(0);
      expect(await balancer.accessLog(1)).toMatchObject([{ outcome: 'ok' }]);
    });
  });
});

test('replicas behind a Unix socket are served, and refused ports are avoided', async () => {
  await withReplicas([named('a')], async (replica) => {
    if (replica === undefined) return;
    await withTempHome(async (dir) => {
      const path = `${dir}/in.sock`;
      const server = await forwarder(path);
      try {
        const at = (port: number, id: number) => aBalancerReplica(0, id, { address: { kind: 'unix', path, port } });
        await withBalancer(
          [at(await refusingPort(), 1), at(replica.port, 2)],
          async (balancer) => {
            for (let turn = 0; turn < 10; turn += 1) {
              const reply = await fetch(balancer.url, { method: 'POST', body: 'x' });
              expect([await reply.text(), reply.headers.get('x-svc-replica')]).toEqual(['a', '2']);
            }
          },
          { policy: 'round_robin' },
        );
      } finally {
        server.close();
      }
    });
  });
});
