import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { connectionFiles } from './connection-files.ts';
import { SshForwards } from './forwards.ts';
import { baseOptions, destination, hostKeyOptions, sshEnvironment, type SshTarget } from './ssh-target.ts';

const target: SshTarget = { name: 'one', host: 'one.example', userConfig: false, hostKeys: 'pin-first' };

test("ssh never prompts and ignores the user's configuration unless userConfig is set", () => {
  expect(baseOptions(target)).toEqual(expect.arrayContaining(['-F', 'none', 'BatchMode=yes']));
  expect(baseOptions({ ...target, userConfig: true })).not.toContain('none');
});

test('ssh offers only the configured key', () => {
  expect(baseOptions({ ...target, identityFile: '/k' })).toEqual(expect.arrayContaining(['-i', '/k', 'IdentitiesOnly=yes']));
  expect(baseOptions(target)).not.toContain('IdentitiesOnly=yes');
});

test('without configured host keys the first one is pinned; else only those count', () => {
  expect(hostKeyOptions(target, '/a b', 'x')).toEqual(
    expect.arrayContaining(['UserKnownHostsFile="/a b"', 'StrictHostKeyChecking=accept-new']),
  );
  expect(hostKeyOptions({ ...target, hostKeys: [] }, '/a', 'x')).toContain('StrictHostKeyChecking=yes');
});

test('a host name that looks like an option is not parsed as one', () => {
  expect(destination({ ...target, host: '-oProxyCommand=x', user: 'u', port: 9 }, '/kh')).toEqual([
    '-l',
    'u',
    '-p',
    '9',
    '--',
    '-oProxyCommand=x',
  ]);
});

test('a jump host gets the same options, and only %h and %p stay fields', () => {
  const proxyCommand = destination({ ...target, identityFile: '/k%1', proxyJump: 'a@[2001:db8::1]:7,b' }, '/kh')[1] ?? '';
  expect(proxyCommand).toMatch(/^ProxyCommand='ssh' /);
  expect(proxyCommand).toContain("'/k%%1'");
  expect(proxyCommand).toContain('2001:db8::1');
  expect(proxyCommand.endsWith(` -W '[%h]:%p' '--' 'b'`)).toBe(true);
  expect(proxyCommand.replaceAll('%%', '').match(/%/g)).toHaveLength(2);
});

test("ssh does not inherit the caller's locale", () => {
  expect(Object.keys(sshEnvironment(true)).filter((name) => name === 'LANG' || name.startsWith('LC_'))).toEqual([]);
  expect(Object.keys(sshEnvironment(false)).toSorted()).toEqual(['HOME', 'LOGNAME', 'PATH', 'SSH_AUTH_SOCK', 'SVC_COOKIE', 'USER']);
});

test("socket paths fit Linux's limit in the longest allowed home", () => {
  const paths = homePaths(`/${'h'.repeat(61)}`, 0);
  // ssh temporarily uses the private name, which is five bytes longer, plus 17 bytes of its own; a socket may have 107.
  expect(Buffer.byteLength(connectionFiles(paths, target).control('s10')) + 5 + 17).toBeLessThanOrEqual(107);
  const { records, name } = new SshForwards(paths, ['one', '/base'], () => Promise.reject(new Error('not used')), new FakeClock());
  expect(Buffer.byteLength(records.socket(name, 65_535))).toBeLessThanOrEqual(107);
});

test('host keys are separate per machine name, connections also per login', () => {
  const paths = homePaths('/h', 0);
  const files = connectionFiles(paths, target);
  const another = connectionFiles(paths, { ...target, name: 'two' });
  const login = connectionFiles(paths, { ...target, user: 'u' });
  expect(another.knownHosts).not.toBe(files.knownHosts);
  expect(login.knownHosts).toBe(files.knownHosts);
  expect(login.control('x')).not.toBe(files.control('x'));
});
