import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadSshPools } from './load-ssh-pools.ts';

let dir = '';
beforeAll(() => (dir = mkdtempSync(join(tmpdir(), 'svc-pools-'))));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const namesIn = async (ours: string, skypilots: string): Promise<readonly string[]> =>
  (await loadSshPools(join(dir, ours), join(dir, skypilots))).map(({ name, file }) => `${name} of ${file.slice(dir.length + 1)}`);

test("svc's pools file is read, else SkyPilot's; without both there are no pools", async () => {
  writeFileSync(join(dir, 'ours'), 'mine: { hosts: [a] }');
  writeFileSync(join(dir, 'skypilots'), 'theirs: { hosts: [a] }');
  expect(await namesIn('ours', 'skypilots')).toEqual(['mine of ours']);
  expect(await namesIn('none', 'skypilots')).toEqual(['theirs of skypilots']);
  expect(await namesIn('none', 'none either')).toEqual([]);
});

test('a file that is too large is rejected unread', async () => {
  writeFileSync(join(dir, 'large'), '#'.repeat(1_048_577));
  await expect(loadSshPools(join(dir, 'large'))).rejects.toMatchObject({ code: 'SVC_INVALID_CONFIG' });
});
