import { expect, test } from 'vitest';
import { isAbsent } from './remote-file.ts';

test('a file that is made between two looks at it was not there, and one that may not be read is no absent one', () => {
  expect(isAbsent({ exitCode: 44, stderr: 'sh: 1: cannot open /a/pid: No such file' })).toBe(true);
  expect(isAbsent({ exitCode: 1, stderr: 'sh: 1: cannot open /a/pid: No such file' })).toBe(true);
  expect(isAbsent({ exitCode: 1, stderr: 'sh: line 1: /a/pid: No such file or directory' })).toBe(true);
  expect(isAbsent({ exitCode: 44, stderr: 'sh: 1: cannot open /a/pid: Permission denied' })).toBe(false);
  expect(isAbsent({ exitCode: 1, stderr: 'cat: read error: Input/output error' })).toBe(false);
});
