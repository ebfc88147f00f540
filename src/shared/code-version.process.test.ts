import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeFingerprint, codeVersion } from './code-version.ts';
import { svcVersion } from './version.ts';

/** A checkout with the given files below `src`. */
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

test('the same code has the same fingerprint wherever it lies, and a changed line has another', () => {
  const code = { 'a.ts': '1', 'deep/b.mjs': '2' };
  expect(of(code)).toBe(of(code));
  expect(of(code)).not.toBe(of({ ...code, 'deep/b.mjs': '3' }));
  expect(of(code)).not.toBe(of({ 'a.ts': '1', 'deep/c.mjs': '2' }));
});

test('tests and what is no code change nothing', () => {
  expect(of({ 'a.ts': '1' })).toBe(of({ 'a.ts': '1', 'a.test.ts': '2', 'deep/notes.md': '3' }));
});

test('the version of this program begins with its number and stays the same', () => {
  expect(codeVersion()).toMatch(new RegExp(`^${svcVersion.replaceAll('.', '\\.')}\\+[0-9a-f]{12}$`));
  expect(codeVersion()).toBe(codeVersion());
});
