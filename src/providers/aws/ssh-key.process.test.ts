import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { homePaths } from '../../shared/paths.ts';
import { HomeFiles } from './home-identity.ts';
import { sshKeyFromSeed } from './ssh-key.ts';
import { userData } from './user-data.ts';

test('OpenSSH reads the keys, and finds the public one in the private one', async () => {
  await withTempHome((home) => {
    for (const [index, byte] of [0, 1, 127, 255].entries()) {
      const key = sshKeyFromSeed(Buffer.alloc(32, byte), 'a comment');
      const file = join(home, `key${index}`);
      writeFileSync(file, key.privateFile, { mode: 0o600 });
      expect(execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).trim()).toBe(key.publicLine);
    }
  });
});

test('all processes of a home have one key, host keys follow from it, and another home has others', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, 0);
    expect(new HomeFiles(paths).existing()).toBeUndefined();
    const [one, other] = [new HomeFiles(paths).identity(), new HomeFiles(paths).identity()];
    expect(other.id).toBe(one.id);
    expect(statSync(one.keyFile).mode & 0o777).toBe(0o600);
    expect(one.hostKey('a').publicLine).toBe(other.hostKey('a').publicLine);
    expect(one.hostKey('a').publicLine).not.toBe(one.hostKey('b').publicLine);
    expect(one.hostKey('a').publicLine).not.toBe(one.key.publicLine);
    const elsewhere = new HomeFiles(homePaths(join(home, 'elsewhere'), 0)).identity();
    expect(elsewhere.id).not.toBe(one.id);
    expect(elsewhere.hostKey('a').publicLine).not.toBe(one.hostKey('a').publicLine);
  });
});

test('a home remembers where it asked, and which roles it made', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, 0);
    const files = new HomeFiles(paths);
    files.noteRegion('us-east-1');
    files.noteRegion('us-east-1');
    files.noteRegion('eu-west-1');
    files.noteRole('a/../b');
    expect([...new HomeFiles(paths).regions()].toSorted()).toEqual(['eu-west-1', 'us-east-1']);
    expect(files.hasRole('a/../b')).toBe(true);
    files.forgetRole('a/../b');
    expect(files.hasRole('a/../b')).toBe(false);
  });
});

test('what a machine does at its first start is good shell', () => {
  const script = userData(sshKeyFromSeed(Buffer.alloc(32, 7), 'svc-host'));
  expect(() => execFileSync('sh', ['-n'], { input: script })).not.toThrow();
  expect(Buffer.byteLength(script)).toBeLessThan(16_384);
});
