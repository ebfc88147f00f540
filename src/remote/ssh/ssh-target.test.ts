import { expect, test } from 'vitest';
import { homePaths } from '../../shared/paths.ts';
import { connectionFiles, wayFiles } from './connection-files.ts';
import { baseOptions, destination, hostKeyOptions, sshEnvironment, type SshTarget } from './ssh-target.ts';

const target: SshTarget = { name: 'one', host: 'one.example', userConfig: false, hostKeys: 'pin-first' };

test('nothing is asked, and the user’s own configuration plays no part unless it is to', () => {
  expect(baseOptions(target)).toEqual(expect.arrayContaining(['-F', 'none', 'BatchMode=yes']));
  expect(baseOptions({ ...target, userConfig: true })).not.toContain('none');
});

test('with a key only that one is offered', () => {
  expect(baseOptions({ ...target, identityFile: '/k' })).toEqual(expect.arrayContaining(['-i', '/k', 'IdentitiesOnly=yes']));
  expect(baseOptions(target)).not.toContain('IdentitiesOnly=yes');
});

test('the first host key is taken once, and given ones alone are taken', () => {
  expect(hostKeyOptions(target, '/a b', 'x')).toEqual(
    expect.arrayContaining(['UserKnownHostsFile="/a b"', 'StrictHostKeyChecking=accept-new']),
  );
  expect(hostKeyOptions({ ...target, hostKeys: [] }, '/a', 'x')).toContain('StrictHostKeyChecking=yes');
});

test('a name that looks like an option is none', () => {
  expect(destination({ ...target, host: '-oProxyCommand=x', user: 'u', port: 9 }, '/kh')).toEqual([
    '-l',
    'u',
    '-p',
    '9',
    '--',
    '-oProxyCommand=x',
  ]);
});

test('the way through other machines takes our options along, and only the two fields are ssh’s to fill in', () => {
  const way = destination({ ...target, identityFile: '/k%1', proxyJump: 'a@[2001:db8::1]:7,b' }, '/kh')[1] ?? '';
  expect(way).toMatch(/^ProxyCommand='ssh' /);
  expect(way).toContain("'/k%%1'");
  expect(way).toContain('2001:db8::1');
  expect(way.endsWith(` -W '[%h]:%p' '--' 'b'`)).toBe(true);
  expect(way.replaceAll('%%', '').match(/%/g)).toHaveLength(2);
});

test('ssh does not see the language of its caller', () => {
  expect(Object.keys(sshEnvironment(true)).filter((name) => name === 'LANG' || name.startsWith('LC_'))).toEqual([]);
  expect(Object.keys(sshEnvironment(false)).toSorted()).toEqual(['HOME', 'LOGNAME', 'PATH', 'SSH_AUTH_SOCK', 'SVC_COOKIE', 'USER']);
});

test('names of sockets are short enough for Linux where the home is as long as it may be', () => {
  const paths = homePaths(`/${'h'.repeat(61)}`, 0);
  // ssh adds 17 bytes to a name of ours with five more for a while; a socket may have 107.
  expect(Buffer.byteLength(connectionFiles(paths, target).control('s10')) + 5 + 17).toBeLessThanOrEqual(107);
  expect(Buffer.byteLength(wayFiles(paths, ['one', '/base']).socket(65_535))).toBeLessThanOrEqual(107);
});

test('machines are kept apart by name and address, and logins by all there is', () => {
  const paths = homePaths('/h', 0);
  const files = connectionFiles(paths, target);
  const another = connectionFiles(paths, { ...target, name: 'two' });
  const login = connectionFiles(paths, { ...target, user: 'u' });
  expect(another.knownHosts).not.toBe(files.knownHosts);
  expect(login.knownHosts).toBe(files.knownHosts);
  expect(login.control('x')).not.toBe(files.control('x'));
});
