import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeSshHosts } from '../../../test/support/fake-ssh-hosts.ts';
import { expectNoLeaks } from '../../../test/support/leaks.ts';
import { openSshProvider, pretendReboot, type SshProviderFixture } from '../../../test/support/ssh-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { OpenRemote } from './remotes.ts';

interface World {
  readonly own: SshProviderFixture;
  /** Another home with the same SSH hosts. */
  readonly other: SshProviderFixture;
  readonly homes: readonly string[];
  /** The commands that the own provider has run on SSH hosts since the last call, by the host's name. */
  readonly asked: () => readonly string[];
}

/** Two SSH hosts, whose short files can be read without a command. */
async function withHosts(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const hosts = new FakeSshHosts(dir);
    const [first, second] = [hosts.add('h1'), hosts.add('h2')];
    const commands: string[] = [];
    const open: OpenRemote = (settings) => {
      const remote = hosts.open(settings);
      return new Proxy(remote, {
        get(target, name) {
          if (name === 'exec') commands.push(settings.host.host);
          if (name === 'readText') return async (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);
          return Reflect.get(target, name, target);
        },
      });
    };
    const settings = { hosts: [first.entry, second.entry] };
    const own = openSshProvider({ ...settings, home: join(dir, 'svc'), open });
    const other = openSshProvider({ ...settings, home: join(dir, 'other'), open: hosts.open });
    await use({ own, other, homes: [first.home, second.home], asked: () => commands.splice(0) });
    await expectNoLeaks(dir);
  });
}

test('machines are inspected and listed without a command until one comes, goes or changes', async () => {
  await withHosts(async ({ own, other, homes: [home = ''], asked }) => {
    const id = await own.create('a');
    const isRunning = async (): Promise<boolean> => (await own.provider.inspect([id], {})).get(id)?.state === 'running';
    const names = async (): Promise<number> => (await own.provider.list({ 'svc-key': 'a' }, {})).length;
    // The first poll sees the new machine.
    expect(await isRunning()).toBe(true);
    asked();
    expect([await isRunning(), await isRunning(), await names(), asked()]).toEqual([true, true, 1, []]);
    const theirs = await other.create('b');
    expect([await isRunning(), asked(), await isRunning(), asked()]).toEqual([true, ['h1'], true, []]);
    await other.provider.destroy(theirs, {});
    expect([await names(), asked(), await names(), asked()]).toEqual([1, ['h1'], 1, []]);
    pretendReboot(home);
    expect([await isRunning(), asked()]).toEqual([false, ['h1']]);
    for (const record of globSync(join(home, '.svc/machines/*/machine.json'))) rmSync(record);
    expect([await names(), asked()]).toEqual([0, ['h1']]);
    await own.provider.destroy(id, {});
  });
});

test('a listing of requested machines asks only the SSH hosts that may have one', async () => {
  await withHosts(async ({ own, asked }) => {
    const id = await own.create('a');
    asked();
    expect(await own.provider.list({ 'svc-service-key': 'k' }, { requestedOnly: true })).toMatchObject([{ id }]);
    expect(asked()).toEqual(['h1']);
    // Another process of the home knows no state of the SSH hosts yet.
    expect(await own.open().list({ 'svc-service-key': 'k' }, {})).toMatchObject([{ id }]);
    expect(asked().toSorted()).toEqual(['h1', 'h2']);
    await own.provider.destroy(id, {});
    asked();
    expect(await own.provider.list({ 'svc-service-key': 'k' }, { requestedOnly: true })).toEqual([]);
    expect(asked()).toEqual([]);
  });
});
