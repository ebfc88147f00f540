import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readBuckets, writeBuckets } from './deployment.ts';

test('written buckets are read back, and a missing file means none', () => {
  const file = aFile();
  expect(readBuckets(file)).toEqual([]);
  const buckets = [{ bucket: 'svc-1', place: { kind: 's3', region: 'us-east-1', profile: undefined } }] as const;
  writeBuckets(file, buckets);
  expect(readBuckets(file)).toEqual(buckets);
});

test.each(['[{"bucket":', '{}', '[{"bucket":"svc-1"}]'])('a damaged record does not count as "no buckets": %s', (text) => {
  const file = aFile();
  writeFileSync(file, text);
  expect(() => readBuckets(file)).toThrow(expect.objectContaining({ code: 'SVC_STATE_CORRUPT' }));
});

function aFile(): string {
  const dir = mkdtempSync(join(tmpdir(), 'svc-buckets-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return join(dir, 'buckets.json');
}
