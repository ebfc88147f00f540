import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeFingerprint, codeVersion } from './code-version.ts';
import { svcVersion } from './version.ts';

/** Runs `use` with a checkout that has the given files below `src`. */
function withCheckout(files: Readonly<Record<string, string>>, use: (root: string) => void): void {
  const root = mkdtempSync(join(tmpdir(), 'svc-code-'));
  try {
    mkdirSync(join(root, 'src/deep'), { recursive: true });
    writeFileSync(join(root, 'package-lock.json'), '{}');
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, 'src', file), text);
    use(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const of = (files: Readonly<Record<string, string>>): string => {
  let found = '';
  withCheckout(files, (root) => (found = codeFingerprint(root)));
  return found;
};

test('equal code has the same fingerprint in any folder; a changed line changes it', () => {
  const code = { 'a.ts': '1', 'deep/b.mjs': '2' };
  expect(of(code)).toBe(of(code));
  expect(of(code)).not.toBe(of({ ...code, 'deep/b.mjs': '3' }));
  expect(of(code)).not.toBe(of({ 'a.ts': '1', 'deep/c.mjs': '2' }));
});

test('tests and other files do not change the fingerprint', () => {
  expect(of({ 'a.ts': '1' })).toBe(of({ 'a.ts': '1', 'a.test.ts': '2', 'deep/notes.md': '3' }));
});

test('codeVersion begins with the version number and is stable', () => {
  expect(codeVersion()).toMatch(new RegExp(`^${svcVersion.replaceAll('.', '\\.')}\\+[0-9a-f]{12}$`));
  expect(codeVersion()).toBe(codeVersion());
});
