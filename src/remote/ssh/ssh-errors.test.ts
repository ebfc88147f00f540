import { expect, test } from 'vitest';
import { homePaths } from '../../shared/paths.ts';
import { connectionFiles } from './connection-files.ts';
import { connectError } from './ssh-errors.ts';
import type { SshTarget } from './ssh-target.ts';
import { workError } from '../session/work-error.ts';

const target: SshTarget = {
  name: 'gpu-1',
  host: '192.0.2.7',
  user: 'me',
  port: 2222,
  identityFile: '/k',
  userConfig: false,
  hostKeys: 'pin-first',
};
const files = connectionFiles(homePaths('/h', 0), target);

test.for([
  ['ssh: connect to host 192.0.2.7 port 2222: Connection refused', 'SVC_SSH', 'Connection refused'],
  ['ssh: Could not resolve hostname gpu-1: Name or service not known', 'SVC_SSH', 'Could not resolve'],
  ['Connection timed out during banner exchange\nConnection to UNKNOWN port 65535 timed out', 'SVC_SSH', 'banner exchange'],
  ['', 'SVC_SSH', 'without a word'],
  ['me@192.0.2.7: Permission denied (publickey).', 'SVC_CREDENTIALS', 'does not let the user me in with /k'],
  ['Received disconnect: Too many authentication failures', 'SVC_CREDENTIALS', 'does not let'],
  ['Load key "/k": invalid format\nPermission denied (publickey).', 'SVC_CREDENTIALS', 'cannot be used'],
  ["Permissions 0644 for '/k' are too open.\nWARNING: UNPROTECTED PRIVATE KEY FILE!", 'SVC_CREDENTIALS', 'too open'],
  ['Host key verification failed.', 'SVC_HOST_KEY', 'gpu-1'],
  ['/home/me/.ssh/config: line 3: Bad configuration option: x', 'SVC_HOST_UNFIT', 'line 3'],
] as const)('%s', ([said, code, part]) => {
  const error = connectError(files, target, said);
  expect([error.code, error.message]).toEqual([code, expect.stringContaining(part)]);
  expect(error.hint).not.toBe('');
});

test('the hint contains the ssh command with port and key', () => {
  expect(connectError(files, target, 'x').hint).toContain('ssh -i /k -p 2222 me@192.0.2.7');
});

test('a full disk has its own error code, unlike other file errors', () => {
  expect(workError(target, 'The file /f could not be written', 'cat: write error: No space left on device').code).toBe('SVC_NO_SPACE');
  expect(workError(target, 'The file /f could not be written', 'sh: cannot create /f: Permission denied')).toMatchObject({
    code: 'SVC_PLACE_FAILED',
    message: 'The file /f could not be written on gpu-1: sh: cannot create /f: Permission denied.',
  });
});
