import { execFileSync } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { needs } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { homePaths } from '../../shared/paths.ts';
import { HomeIdentities } from './home-identity.ts';
import { namedIntents } from '../intent-log.ts';
import { sshKeyFromSeed, userData } from './ssh-key.ts';

needs('ssh', () => {
  test('OpenSSH reads the keys and derives the public key from the private one', async () => {
    await withTempHome((home) => {
      for (const [index, byte] of [0, 1, 127, 255].entries()) {
        const key = sshKeyFromSeed(Buffer.alloc(32, byte), 'a comment');
        const file = join(home, `key${index}`);
        writeFileSync(file, key.privateFile, { mode: 0o600 });
        expect(execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).trim()).toBe(key.publicLine);
      }
    });
  });
});

test('all processes of a home share its keys, and another home has different ones', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, 0);
    expect(new HomeIdentities(paths, 'aws').existing()).toBeUndefined();
    const [one, other] = [new HomeIdentities(paths, 'aws').identity(), new HomeIdentities(paths, 'aws').identity()];
    expect(other.id).toBe(one.id);
    expect(statSync(one.keyFile).mode & 0o777).toBe(0o600);
    expect(one.hostKey('a').publicLine).toBe(other.hostKey('a').publicLine);
    expect(one.hostKey('a').publicLine).not.toBe(one.hostKey('b').publicLine);
    expect(one.hostKey('a').publicLine).not.toBe(one.key.publicLine);
    const otherHome = new HomeIdentities(homePaths(join(home, 'elsewhere'), 0), 'aws').identity();
    expect(otherHome.id).not.toBe(one.id);
    expect(otherHome.hostKey('a').publicLine).not.toBe(one.hostKey('a').publicLine);
  });
});

test('files of an earlier version are found at their old paths', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, 0);
    const dir = join(home, 'ssh', 'aws');
    for (const kind of ['regions', 'roles', 'controllers']) mkdirSync(join(dir, kind), { recursive: true });
    writeFileSync(join(dir, 'secret'), `${'07'.repeat(32)}\n`);
    for (const intent of ['regions/eu-west-1', 'roles/c1', 'controllers/c1']) writeFileSync(join(dir, intent), '');
    const identities = new HomeIdentities(paths, 'aws');
    expect(identities.existing()?.id).toBe('ddbafb2f1599552f');
    expect(identities.controllerIdentity('c1')?.id).toBe('be4ba66b65a36586');
    expect(identities.secretForController('c1').path).toBe('ssh/aws/secret');
    expect(namedIntents(paths, 'aws', 'regions').names()).toEqual(['eu-west-1']);
    expect(namedIntents(paths, 'aws', 'roles').get('c1')).toBe(true);
  });
});

test('the first-boot script is valid shell', () => {
  const script = userData(sshKeyFromSeed(Buffer.alloc(32, 7), 'svc-host'));
  expect(() => execFileSync('sh', ['-n'], { input: script })).not.toThrow();
  expect(Buffer.byteLength(script)).toBeLessThan(16_384);
});
