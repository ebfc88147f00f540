import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { someResources } from '../../../test/support/builders.ts';
import { FakeSshHosts } from '../../../test/support/fake-ssh-hosts.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { defaultConfig } from '../../domain/config.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadSshPools } from '../../spec/load-ssh-pools.ts';
import { SshProvider } from './index.ts';
import { noFence } from '../../shared/fence.ts';

const config = () => Promise.resolve(defaultConfig);

/** The provider, reading the user's files in a home of its own. */
async function withFiles(
  files: Readonly<Record<string, string>>,
  use: (provider: SshProvider, dir: string) => Promise<void>,
): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, name)), { recursive: true });
      writeFileSync(join(dir, name), text, { mode: 0o600 });
    }
    const hosts = new FakeSshHosts(dir);
    hosts.add('h1');
    const sshPools = () => loadSshPools(paths.sshPools, join(dir, 'sky/ssh_node_pools.yaml'));
    await use(new SshProvider({ paths, clock: systemClock, random: systemRandom, config, sshPools, fence: noFence }, hosts.open), dir);
  });
}

test('without pools the provider is disabled, and check names the pools file', async () => {
  await withFiles({}, async (provider, dir) => {
    const { enabled, summary, remedies } = await provider.check({});
    expect([enabled, summary, remedies]).toEqual([
      false,
      'no pools of hosts',
      [`To use hosts of your own, list them in ${dir}/svc/ssh_pools.yaml: docs/clouds/ssh.md`],
    ]);
    expect(await provider.offers(someResources(), {})).toEqual({ offers: [], whyNone: 'There are no pools of hosts.' });
    expect(await provider.credentials({ provider: 'aws', home: '/home/c' })).toBeUndefined();
  });
});

test("check reports that the pools are from SkyPilot's file", async () => {
  await withFiles({ 'sky/ssh_node_pools.yaml': 'lab: { hosts: [h1] }' }, async (provider, dir) => {
    expect(await provider.check({})).toMatchObject({
      enabled: true,
      summary: `1 of 1 host in 1 pool can be used; from ${dir}/sky/ssh_node_pools.yaml`,
    });
  });
});

test('a pools file with problems disables the provider and lists them by line', async () => {
  await withFiles({ 'svc/ssh_pools.yaml': 'lab:\n  hosst: [h1]\n' }, async (provider, dir) => {
    const { enabled, remedies } = await provider.check({});
    expect(enabled).toBe(false);
    expect(remedies).toContain(`${dir}/svc/ssh_pools.yaml:2: lab: unknown field 'hosst'`);
    await expect(provider.offers(someResources(), {})).rejects.toMatchObject({ code: 'SVC_INVALID_CONFIG' });
    // `list` also covers machines outside the pools, so it does not need the file.
    expect(await provider.list({}, {})).toEqual([]);
  });
});

test('a remote controller gets resolved pools and each key that they name once', async () => {
  const pools = `
lab:
  identity_file: ../key
  hosts: [192.0.2.1, { ip: 192.0.2.2, user: ann, port: 2222, proxy_jump: gate, hourly_usd: 2 }]
lost:
  identity_file: ../no-key
  hosts: [192.0.2.3]
`;
  await withFiles({ 'svc/ssh_pools.yaml': pools, key: 'PRIVATE' }, async (provider) => {
    const given = await provider.credentials({ provider: 'aws', home: '/home/c' });
    expect(given?.summary).toBe('1 SSH key for 2 hosts of your pools; without 192.0.2.3, whose key or proxy cannot be carried');
    expect(given?.summary).not.toContain('PRIVATE');
    const [file, key] = given?.files ?? [];
    expect(key).toEqual({ path: 'ssh/keys/key-1', content: 'PRIVATE' });
    const identity = { identity_file: '/home/c/ssh/keys/key-1' };
    expect(JSON.parse(file?.content ?? '')).toMatchObject({
      lab: {
        hosts: [
          { ip: '192.0.2.1', ...identity },
          { ip: '192.0.2.2', ...identity, user: 'ann', port: 2222, proxy_jump: 'gate', hourly_usd: 2 },
        ],
      },
    });
  });
});
