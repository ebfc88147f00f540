import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readJsonFile } from './files.ts';

test('a missing, a damaged and an unreadable file give three different results', () => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-json-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'record.json');
  expect(readJsonFile(file)).toBeUndefined();
  writeFileSync(file, '{"half":');
  expect(readJsonFile(file)).toEqual({ value: undefined });
  writeFileSync(file, '[1]');
  expect(readJsonFile(file)).toEqual({ value: [1] });
  expect(() => readJsonFile(dir)).toThrow('EISDIR');
});
