import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { ClusterPorts } from '../../src/controller/cluster/cluster-ports.ts';
import type { SshHost } from '../../src/domain/config.ts';
import { providerCases } from '../../src/providers/conformance.ts';
import type { MachineId } from '../../src/providers/provider.ts';
import { jobLogPath, jobStatus, startJob } from '../../src/provision/job.ts';
import type { Remote } from '../../src/remote/remote.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { dialReplica } from '../../src/shared/system/dial.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { someResources } from '../support/builders.ts';
import { openSshProvider, type SshProviderFixture } from '../support/ssh-provider.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import type { TestSshHostOptions, TestSshHost } from '../testbed/hosts/test-hosts.ts';
import { describeSshHosts, signalSsh } from './support.ts';

function entryOf(host: TestSshHost): SshHost {
  const { identityFile } = host.target();
  return { host: host.ip, user: host.user, port: undefined, identityFile, proxyJump: undefined, hourlyUsd: 0 };
}

/**
 * Runs `use` with a home whose pool has the SSH hosts. Afterwards nothing may remain on any of them that still answers.
 */
async function withSshPool(hosts: readonly TestSshHost[], use: (pool: SshProviderFixture) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const pool = openSshProvider({ home: join(dir, 'svc'), hosts: hosts.map(entryOf), open: undefined });
    try {
      // Opening the connections takes longest, but listings and checks have a limit of seconds.
      await waitFor('the hosts to answer', async () => (await pool.offers()).offers.length === hosts.length);
      await use(pool);
      for (const { id } of await pool.open().list({}, {})) await pool.provider.destroy(id, {});
    } finally {
      signalSsh(dir);
    }
  });
}

const foldersOf = async (host: TestSshHost): Promise<string> =>
  host.exec('sh', '-c', `ls /home/${host.user}/.svc/machines | grep -v revision || true`);

/** A server that needs only a shell and the tools of the base machine. */
async function serve(remote: Remote, { port = 80, isolated = true } = {}): Promise<ReplicaAddress> {
  const program = `exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1); bind(S, sockaddr_in(${port}, INADDR_ANY)) or die $!; listen(S, 9); while (accept(C, S)) { print C "here\\n"; close C }'`;
  await startJob(remote, 'main', { run: program, env: {}, workdir: `${remote.baseDir}/workdir`, isolated });
  return remote.address(port, { isolated });
}

async function answerAt(address: ReplicaAddress): Promise<string | undefined> {
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of await dialReplica(address, { timeoutMs: 5_000 })) chunks.push(chunk);
    return Buffer.concat(chunks).toString() || undefined;
  } catch {
    return undefined;
  }
}

const machines: readonly (readonly [name: string, options: TestSshHostOptions])[] = [
  ['near', {}],
  ['far, no rsync, no sudo', { delayMs: 35, rsync: false, sudo: false, user: 'someone' }],
];

describeSshHosts("SSH hosts of a user's pool", (hostOf) => {
  for (const [what, options] of machines) {
    test.for(providerCases)(`${what}: $name`, async ({ run }) => {
      const host = await hostOf(what === 'near' ? 'suite' : 'suite-far', options);
      await withSshPool([host], async (pool) => {
        const fixture = {
          provider: pool.provider,
          other: pool.open(),
          resources: someResources(),
          refuse: () => Promise.resolve(pool.setHosts([])),
          async preemptAll() {
            await host.reboot();
            // The cached state predates the reboot.
            await waitFor('its return', async () => (await pool.offers()).offers.length === 1);
          },
          untilRunning: () => Promise.resolve(),
        };
        await expect(run(fixture)).resolves.toBeUndefined();
        pool.setHosts([entryOf(host)]);
      });
      expect(await foldersOf(host)).toBe('');
    });
  }

  test('two replicas on one host serve one port, also while it is cut off', async () => {
    const host = await hostOf('cut-off');
    await withSshPool([host], async (pool) => {
      const [a, b] = [await pool.create('a'), await pool.create('b')];
      const remotes = [a, b].map((id) => pool.provider.remote(id));
      const addresses: ReplicaAddress[] = [];
      for (const remote of remotes) addresses.push(await serve(remote));
      const log = (): Promise<readonly (string | undefined)[]> =>
        Promise.all(remotes.map((remote) => remote.readFile(jobLogPath(remote, 'main'))));
      for (const address of addresses) expect(await waitFor('an answer', () => answerAt(address), { describe: log })).toBe('here\n');
      await host.cut();
      const asked = await waitFor('the cut', () => pool.provider.list({ 'svc-service-key': 'k' }, {}).then(() => undefined, String));
      expect(asked).toContain('which has machines, cannot be asked about them');
      expect([...(await pool.provider.inspect([a, b], {})).values()]).toEqual([{ state: 'running' }, { state: 'running' }]);
      await host.heal();
      for (const address of addresses) expect(await waitFor('another answer', () => answerAt(address))).toBe('here\n');
      await waitFor('the host to be asked again', async () => (await pool.provider.list({}, {}).catch(() => [])).length === 2);
      for (const remote of remotes) expect((await jobStatus(remote, 'main')).phase).toBe('run');
    });
    expect(await foldersOf(host)).toBe('');
  });

  test("a cluster's port is reached on the loopback, beside a replica that has the same port", async () => {
    const host = await hostOf('suite');
    await withSshPool([host], async (pool) => {
      const replica = pool.provider.remote(await pool.create('a'));
      const cluster = pool.provider.remote(await pool.create('b'));
      const ports = new ClusterPorts({ key: 'k', clock: systemClock, log: pino({ level: 'silent' }) });
      try {
        await serve(replica, { port: 8_123 });
        await ports.open([8_123], cluster);
        const [open] = ports.all;
        const own: ReplicaAddress = { kind: 'tcp', host: '127.0.0.1', port: Number(open?.address.split(':')[1]) };
        expect(await answerAt(own)).toBeUndefined();
        await serve(cluster, { port: 8_123, isolated: false });
        expect(await waitFor('an answer', () => answerAt(own))).toBe('here\n');
      } finally {
        ports.close();
      }
    });
  });

  test("a reboot ends a host's machine, removes its folder, and permits a new one", async () => {
    const host = await hostOf('rebooted');
    await withSshPool([host], async (pool) => {
      const id = await pool.create('a');
      await serve(pool.provider.remote(id));
      await host.reboot();
      const state = async (of: MachineId) => (await pool.provider.inspect([of], {})).get(of);
      await waitFor('the news', async () => (await state(id))?.state === 'gone');
      expect(await state(id)).toEqual({ state: 'gone', reason: 'preempted' });
      await waitFor('its removal', () =>
        pool.provider.destroy(id, {}).then(
          () => true,
          () => false,
        ),
      );
      const next = await pool.create('b');
      expect(await waitFor('an answer', async () => answerAt(await serve(pool.provider.remote(next))))).toBe('here\n');
    });
    expect(await foldersOf(host)).toBe('');
  });

  test('a host with a full disk or a changed key is skipped with reason', async () => {
    const [full, rekeyed, good] = [await hostOf('full', { diskMb: 300 }), await hostOf('rekeyed'), await hostOf('good')];
    await withSshPool([full, rekeyed, good], async (pool) => {
      expect((await pool.offers()).offers).toHaveLength(3);
      await full.exec('sh', '-c', `dd if=/dev/zero of=/home/${full.user}/fill bs=1M count=280 2>/dev/null || true`);
      await rekeyed.rekey();
      signalSsh(join(pool.paths.home, '..'));
      let fresh = pool.open();
      // Its sshd restarts, which takes a moment.
      const { enabled, details, remedies } = await waitFor('the findings', async () => {
        fresh = pool.open();
        const check = await fresh.check({});
        return check.details.every(([, text]) => !/ yet$|does not answer/.test(text)) && check;
      });
      expect(enabled).toBe(true);
      expect(details[0]?.[1]).toMatch(/MB of disk left/);
      expect(details[1]?.[1]).toMatch(/another host key|key/);
      expect(remedies.join('\n')).toMatch(/Free space below/);
      expect((await fresh.offers(someResources(), {})).offers.map(({ zone }) => zone)).toEqual([good.ip]);
    });
  });

  test('concurrent controllers on one host create no extra machines and share no capacity', async () => {
    const host = await hostOf('shared');
    await withSshPool([host], (one) =>
      withSshPool([host], async (other) => {
        const cpus = (await one.offers()).offers[0]?.cpus ?? 0;
        const whole = { cpus: { value: cpus, atLeast: true } };
        // Both controllers see it as free.
        const [mine, theirs] = [await one.offers(whole), await other.offers(whole)];
        expect([mine.offers.length, theirs.offers.length]).toEqual([1, 1]);
        const outcomes = await Promise.allSettled([one.create('a', whole), other.create('b', whole)]);
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        expect(outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []))[0]).toMatch(/CPUs/);
      }),
    );
  });
});
