import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { expectNoLeaks, killProcessesOf } from '../../../test/support/leaks.ts';
import { needs } from '../../../test/support/needs.ts';
import { startLoopbackSshHost, type LoopbackSshHost } from '../../../test/support/loopback-ssh-hosts.ts';
import { openSshProvider, pretendReboot, type SshProviderFixture } from '../../../test/support/ssh-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { jobLogPath, jobStatus, startJob } from '../../provision/job.ts';
import { dialReplica } from '../../shared/system/dial.ts';
import { providerCases } from '../conformance.ts';

type World = SshProviderFixture & { readonly host: LoopbackSshHost; readonly dir: string };

/** A home and an SSH host that it reaches with the system's ssh, through an sshd of the test's own on loopback. */
async function withHost(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const host = await startLoopbackSshHost(join(dir, 'h'));
    const fixture = openSshProvider({ home: join(dir, 'svc'), hosts: [host.entry], open: undefined });
    try {
      // Opening the connection takes longest, and callers that list offers or check the provider wait for seconds only.
      await waitFor('the host to answer', async () => (await fixture.offers()).offers.length === 1);
      await use({ ...fixture, host, dir });
      for (const { id } of await fixture.open().list({}, {})) await fixture.provider.destroy(id, {});
      await expectNoLeaks(host.home);
    } finally {
      await host.stop();
      // The connections that ssh keeps open for an hour.
      await killProcessesOf(dir);
    }
  });
}

needs('sshd', () => {
  test.concurrent.for(providerCases)(`over SSH: $name`, async ({ run }) => {
    await withHost(async (world) => {
      const fixture = {
        provider: world.provider,
        other: world.open(),
        resources: someResources(),
        // An SSH host that is no longer in the pool gets no new machines; its existing ones are still found.
        refuse: () => Promise.resolve(world.setHosts([])),
        preemptAll: () => Promise.resolve(pretendReboot(world.host.home)),
        untilRunning: () => Promise.resolve(),
      };
      await expect(run(fixture)).resolves.toBeUndefined();
      world.setHosts([world.host.entry]);
    });
  });

  const echoServer = `require('net').createServer({ allowHalfOpen: true }, (s) => s.pipe(s)).listen(80)`;

  test(`a replica serves over SSH and continues while its SSH host is disconnected`, async () => {
    await withHost(async ({ provider, create, host }) => {
      const id = await create('a');
      const remote = provider.remote(id);
      await startJob(remote, 'main', {
        run: `exec "$NODE" -e "${echoServer}"`,
        env: { NODE: process.execPath },
        workdir: `${remote.baseDir}/workdir`,
      });
      const address = await remote.address(80);
      expect(address).toMatchObject({ kind: 'unix', port: 80 });
      const echo = async (): Promise<string | undefined> => {
        try {
          const socket = await dialReplica(address, { timeoutMs: 5_000 });
          socket.end('over');
          const chunks: Buffer[] = [];
          for await (const chunk of socket) chunks.push(chunk);
          return chunks.length === 0 ? undefined : Buffer.concat(chunks).toString();
        } catch {
          return undefined;
        }
      };
      expect(await waitFor('an answer', echo, { describe: () => remote.readFile(jobLogPath(remote, 'main')) })).toBe('over');
      await host.stop();
      expect((await provider.inspect([id], {})).get(id)).toEqual({ state: 'running' });
      await expect(provider.list({ 'svc-key': 'a' }, {})).rejects.toMatchObject({ code: 'SVC_SSH' });
      await host.start();
      expect(await waitFor('another answer', echo)).toBe('over');
      await waitFor('the host to be asked again', async () => (await provider.list({ 'svc-key': 'a' }, {}).catch(() => [])).length === 1);
      expect((await jobStatus(remote, 'main')).phase).toBe('run');
    });
  });

  test(`a rejected or missing key is reported with a remedy`, async () => {
    await withHost(async ({ provider, open, host, dir }) => {
      await host.stop();
      await killProcessesOf(join(dir, 'svc'));
      rmSync(join(dir, 'h/authorized'));
      await host.start();
      const name = `lab/${host.entry.host}`;
      // A check reports the findings that it has after some seconds.
      const findings = () =>
        waitFor('the findings', async () => {
          const { enabled, details, remedies } = await open().check({});
          const [, text = ''] = details[0] ?? [];
          return !text.endsWith(' yet') && { enabled, text, remedies: remedies.join('; ') };
        });
      expect(await findings()).toEqual({
        enabled: false,
        text: expect.stringMatching(/does not let .* in with .*user-key$/),
        remedies: expect.stringContaining(`${name}: Put the public key into ~/.ssh/authorized_keys`),
      });
      rmSync(join(dir, 'h/user-key'));
      const missing = `user-key for ${host.entry.host} of the pool lab does not exist`;
      expect(await findings()).toMatchObject({ enabled: false, text: expect.stringContaining(missing) });
      // An unusable SSH host refuses like one without capacity: the search can ask others at once.
      const offer = {
        provider: 'ssh',
        region: 'lab',
        zone: host.entry.host,
        instanceType: 'shared host',
        cpus: 1,
        memoryGb: 1,
        accelerator: undefined,
        spot: false,
        hourlyUsd: 0,
      };
      await expect(provider.create(offer, aMachineSpec(), 'a', {})).rejects.toMatchObject({
        code: 'SVC_CAPACITY',
        refusal: 'capacity',
        scope: 'zone',
      });
    });
  });
});
