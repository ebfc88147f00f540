import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SshHost } from '../../src/domain/ssh-pool.ts';
import { providerCases } from '../../src/providers/conformance.ts';
import type { MachineId } from '../../src/providers/provider.ts';
import { jobLogPath, jobStatus, startJob } from '../../src/provision/job.ts';
import type { Remote } from '../../src/remote/remote.ts';
import { dialReplica } from '../../src/shared/dial.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { someResources } from '../support/builders.ts';
import { openSshPlace, type SshPlace } from '../support/ssh-place.ts';
import { withTempHome } from '../support/temp-home.ts';
import { waitFor } from '../support/wait-for.ts';
import type { HostOptions, TestHost } from '../testbed/hosts/test-hosts.ts';
import { describeHosts, signalSsh } from './support.ts';

function entryOf(host: TestHost): SshHost {
  const { identityFile } = host.target();
  return { host: host.ip, user: host.user, port: undefined, identityFile, proxyJump: undefined, hourlyUsd: 0 };
}

/** Runs `use` with a home whose pool has the hosts; afterwards nothing of it may be left on any of them that still answers. */
async function withPlace(hosts: readonly TestHost[], use: (place: SshPlace) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const place = openSshPlace({ home: join(dir, 'svc'), hosts: hosts.map(entryOf), open: undefined });
    try {
      // Opening the connections takes longest, and whoever lists offers or checks a place waits for seconds only.
      await waitFor('the hosts to answer', async () => (await place.offers()).offers.length === hosts.length, { timeoutMs: 60_000 });
      await use(place);
      for (const { id } of await place.open().list({}, {})) await place.provider.destroy(id, {});
    } finally {
      signalSsh(dir);
    }
  });
}

const foldersOf = async (host: TestHost): Promise<string> =>
  host.exec('sh', '-c', `ls /home/${host.user}/.svc/machines | grep -v revision || true`);

/** A server of nothing but a shell and what every machine here has. */
async function serve(remote: Remote): Promise<ReplicaAddress> {
  const program = `exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1); bind(S, sockaddr_in(80, INADDR_ANY)) or die $!; listen(S, 9); while (accept(C, S)) { print C "here\\n"; close C }'`;
  await startJob(remote, 'main', { run: program, env: {}, workdir: `${remote.baseDir}/workdir` });
  return remote.address(80);
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

const machines: readonly (readonly [name: string, options: HostOptions])[] = [
  ['near', {}],
  ['far, no rsync, no sudo', { delayMs: 35, rsync: false, sudo: false, user: 'someone' }],
];

describeHosts('hosts of the user, over SSH', (hostOf) => {
  for (const [what, options] of machines) {
    test.for(providerCases)(`${what}: $name`, async ({ run }) => {
      const host = await hostOf(what === 'near' ? 'suite' : 'suite-far', options);
      await withPlace([host], async (place) => {
        const fixture = {
          provider: place.provider,
          other: place.open(),
          resources: someResources(),
          refuse: () => Promise.resolve(place.setHosts([])),
          async preemptAll() {
            await host.reboot();
            // What was known of it is of the time before.
            await waitFor('its return', async () => (await place.offers()).offers.length === 1, { timeoutMs: 60_000 });
          },
          untilRunning: () => Promise.resolve(),
        };
        await expect(run(fixture)).resolves.toBeUndefined();
        place.setHosts([entryOf(host)]);
      });
      expect(await foldersOf(host)).toBe('');
    });
  }

  test('two replicas on a host without Node.js and root serve one port, and go on while the host is cut off', async () => {
    const host = await hostOf('cut-off');
    await withPlace([host], async (place) => {
      const [a, b] = [await place.create('a'), await place.create('b')];
      const remotes = [a, b].map((id) => place.provider.remote(id));
      const addresses: ReplicaAddress[] = [];
      for (const remote of remotes) addresses.push(await serve(remote));
      const log = (): Promise<readonly (string | undefined)[]> =>
        Promise.all(remotes.map((remote) => remote.readFile(jobLogPath(remote, 'main'))));
      for (const address of addresses) expect(await waitFor('an answer', () => answerAt(address), { describe: log })).toBe('here\n');
      await host.cut();
      const asked = await waitFor('the cut', () => place.provider.list({ 'svc-service-key': 'k' }, {}).then(() => undefined, String), {
        timeoutMs: 60_000,
      });
      expect(asked).toContain('which has machines, cannot be asked about them');
      expect([...(await place.provider.inspect([a, b], {})).values()]).toEqual([{ state: 'running' }, { state: 'running' }]);
      await host.heal();
      for (const address of addresses)
        expect(await waitFor('another answer', () => answerAt(address), { timeoutMs: 90_000 })).toBe('here\n');
      await waitFor('the host to be asked again', async () => (await place.provider.list({}, {}).catch(() => [])).length === 2, {
        timeoutMs: 90_000,
      });
      for (const remote of remotes) expect((await jobStatus(remote, 'main')).phase).toBe('run');
    });
    expect(await foldersOf(host)).toBe('');
  });

  test('a machine of a host that was started anew is gone, its folder is removed, and a new one comes up', async () => {
    const host = await hostOf('rebooted');
    await withPlace([host], async (place) => {
      const id = await place.create('a');
      await serve(place.provider.remote(id));
      await host.reboot();
      const state = async (of: MachineId) => (await place.provider.inspect([of], {})).get(of);
      await waitFor('the news', async () => (await state(id))?.state === 'gone', { timeoutMs: 60_000 });
      expect(await state(id)).toEqual({ state: 'gone', reason: 'preempted' });
      await waitFor(
        'its removal',
        () =>
          place.provider.destroy(id, {}).then(
            () => true,
            () => false,
          ),
        { timeoutMs: 60_000 },
      );
      const next = await place.create('b');
      expect(await waitFor('an answer', async () => answerAt(await serve(place.provider.remote(next))))).toBe('here\n');
    });
    expect(await foldersOf(host)).toBe('');
  });

  test('a host with a full disk, and one with another key than before, are left out with the reason while another one is used', async () => {
    const [full, rekeyed, good] = [await hostOf('full', { diskMb: 300 }), await hostOf('rekeyed'), await hostOf('good')];
    await withPlace([full, rekeyed, good], async (place) => {
      expect((await place.offers()).offers).toHaveLength(3);
      await full.exec('sh', '-c', `dd if=/dev/zero of=/home/${full.user}/fill bs=1M count=280 2>/dev/null || true`);
      await rekeyed.rekey();
      signalSsh(join(place.paths.home, '..'));
      let fresh = place.open();
      // Its sshd is started anew, which takes a moment.
      const { enabled, details, remedies } = await waitFor('the findings', async () => {
        fresh = place.open();
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

  test('two controllers on one host at the same time never make more than was asked for, nor take the same share', async () => {
    const host = await hostOf('shared');
    await withPlace([host], (one) =>
      withPlace([host], async (other) => {
        const cpus = (await one.offers()).offers[0]?.cpus ?? 0;
        const whole = { cpus: { value: cpus, atLeast: true } };
        // Both see it free.
        const [mine, theirs] = [await one.offers(whole), await other.offers(whole)];
        expect([mine.offers.length, theirs.offers.length]).toEqual([1, 1]);
        const outcomes = await Promise.allSettled([one.create('a', whole), other.create('b', whole)]);
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
        expect(outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason)] : []))[0]).toMatch(/CPUs/);
      }),
    );
  });
});
