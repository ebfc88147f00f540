import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isOlderVersion, codeFingerprint, codeVersion, svcVersion } from './version.ts';

test.each([
  ['0.1.0', '0.1.1', true],
  ['0.9.0', '0.10.0', true],
  ['0.10.0', '0.9.9', false],
  ['1.0.0', '1.0.0', false],
  ['1.0', '1.0.1', true],
  ['2.0.0', '1.9.9', false],
  ['1.0.0-rc.1', '1.0.0', false],
])('%s is older than %s: %s', (a, b, expected) => {
  expect(isOlderVersion(a, b)).toBe(expected);
});

/** Runs `use` with a checkout that has the given files below `src`, and a price table. */
function withCheckout(files: Readonly<Record<string, string>>, price: string, use: (root: string) => void): void {
  const root = mkdtempSync(join(tmpdir(), 'svc-code-'));
  try {
    mkdirSync(join(root, 'src/deep'), { recursive: true });
    mkdirSync(join(root, 'catalog'));
    writeFileSync(join(root, 'catalog/aws.csv'), price);
    writeFileSync(join(root, 'package-lock.json'), '{}');
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, 'src', file), text);
    use(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const of = (files: Readonly<Record<string, string>>, price = '1'): string => {
  let found = '';
  withCheckout(files, price, (root) => (found = codeFingerprint(root)));
  return found;
};

test('equal code has the same fingerprint in any folder; a changed line or price changes it', () => {
  const code = { 'a.ts': '1', 'deep/b.mjs': '2' };
  expect(of(code)).toBe(of(code));
  expect(of(code)).not.toBe(of({ ...code, 'deep/b.mjs': '3' }));
  expect(of(code)).not.toBe(of({ 'a.ts': '1', 'deep/c.mjs': '2' }));
  expect(of(code)).not.toBe(of(code, '2'));
});

test('tests and other files do not change the fingerprint', () => {
  expect(of({ 'a.ts': '1' })).toBe(of({ 'a.ts': '1', 'a.test.ts': '2', 'deep/notes.md': '3' }));
});

test('codeVersion begins with the version number and is stable', () => {
  expect(codeVersion()).toMatch(new RegExp(`^${svcVersion.replaceAll('.', '\\.')}\\+[0-9a-f]{12}$`));
  expect(codeVersion()).toBe(codeVersion());
});
