import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { idsLeftAfterRestore, openStore } from './open-store.ts';
import type { Store } from './store.ts';

const event = anEvent();

/** Runs `use` with a database of one service, and with a backup from before its last change. */
async function withBackup(use: (path: string, backup: string, store: Store) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const [path, backup] = [join(home, 'state.db'), join(home, 'backup')];
    const store = await openStore({ path, clock: systemClock });
    try {
      await store.services.add(aService(), aVersion(), event, 16);
      const raw = new DatabaseSync(path);
      raw.exec(`vacuum into '${backup}'`);
      await store.events.append(event);
      raw.exec('pragma wal_checkpoint(passive)');
      raw.close();

      await use(path, backup, store);
    } finally {
      await store.close();
    }
  });
}

const fileIdOf = (file: string): string => `${statSync(file).dev}:${statSync(file).ino}`;

/** Simulates several seconds in which the file was watched. */
async function watched(store: Store): Promise<void> {
  const clock = new FakeClock();
  const cancel = store.file?.watch(clock, () => undefined);
  await clock.advance(4_000);
  cancel?.();
}

/** Events that happen to the open file, and the reason that svc reports. */
const losses: readonly (readonly [string, (path: string, backup: string) => void, string])[] = [
  ['removed', (path) => rmSync(path), 'it is gone'],
  ['moved away', (path) => renameSync(path, `${path}.away`), 'it is gone'],
  ['replaced by a rename', (path, backup) => renameSync(backup, path), 'another file took its place'],
  ['overwritten in place by an older copy', (path, backup) => copyFileSync(backup, path), 'it is an older copy'],
  ['emptied', (path) => truncateSync(path), 'it is empty'],
  ['overwritten by a text', (path) => writeFileSync(path, 'nothing'.repeat(999)), 'it cannot be read any more'],
  ['left without its log', (path) => rmSync(`${path}-wal`), 'its write-ahead log (-wal) was removed or replaced'],
];

test.for(losses)('an open database that is %s is detected within seconds', ([, lose, why]) =>
  withBackup(async (path, backup, store) => {
    const clock = new FakeClock();
    const reported: string[] = [];
    store.file?.watch(clock, (reason) => reported.push(reason));
    await clock.advance(5_000);
    expect(reported).toEqual([]);
    lose(path, backup);
    await clock.advance(3_000);
    expect(reported).toEqual([why]);
  }),
);

test.for(losses.slice(0, 4))('a write to a database that was %s is refused', ([, lose, why]) =>
  withBackup(async (path, backup, store) => {
    await watched(store);
    lose(path, backup);
    await expect(store.events.append(event)).rejects.toMatchObject({ code: 'SVC_STATE_REPLACED', message: expect.stringContaining(why) });
  }),
);

test('changes, checkpoints and other processes do not count as a replacement', () =>
  withBackup(async (path, _backup, store) => {
    const clock = new FakeClock();
    const reported: string[] = [];
    store.file?.watch(clock, (reason) => reported.push(reason));
    const other = await openStore({ path, clock: systemClock, mayAcceptReplacedFile: false });
    for (let round = 0; round < 20; round += 1) {
      await (round % 2 === 0 ? store : other).events.append(event);
      if (round % 5 === 0) {
        const raw = new DatabaseSync(path);
        raw.exec('pragma wal_checkpoint(truncate)');
        raw.close();
      }
      await clock.advance(1_000);
    }
    await other.close();
    await clock.advance(3_000);
    await store.events.append(event);
    expect(reported).toEqual([]);
  }));

test("the former database's log is moved aside, not replayed into the new file", () =>
  withBackup(async (opened, backup, store) => {
    await watched(store);
    await store.services.update(aService({ revision: 0 }), { reason: 'in the log alone' }, event);
    // As left by processes that were all killed.
    const path = join(opened, '..', 'killed.db');
    for (const suffix of ['', '-wal']) copyFileSync(`${opened}${suffix}`, `${path}${suffix}`);
    const seal: object = JSON.parse(readFileSync(`${opened}.seal`, 'utf8'));
    writeFileSync(`${path}.seal`, JSON.stringify({ ...seal, place: fileIdOf(path), log: fileIdOf(`${path}-wal`) }));
    const log = readFileSync(`${path}-wal`);

    copyFileSync(backup, path);
    await expect(openStore({ path, clock: systemClock, mayAcceptReplacedFile: false })).rejects.toMatchObject({
      code: 'SVC_STATE_REPLACED',
    });
    const restored = await openStore({ path, clock: systemClock });
    expect(restored.file?.replaced).toBe('it is an older copy');
    expect((await restored.services.get('chat'))?.reason).toBe(null);
    expect((await restored.services.get('chat'))?.nextReplicaId).toBe(1 + idsLeftAfterRestore);
    const aside = readdirSync(join(path, '..')).filter((name) => name.startsWith('killed.db-wal.'));
    expect(aside).toHaveLength(1);
    expect(readFileSync(join(path, '..', aside[0] ?? ''))).toEqual(log);
    await restored.close();
    const again = await openStore({ path, clock: systemClock });
    expect(again.file?.replaced).toBeUndefined();
    expect((await again.services.get('chat'))?.nextReplicaId).toBe(1 + idsLeftAfterRestore);
    await again.close();
  }));

test('a database reopened with its log after kill -9 is the same one', () =>
  withTempHome(async (home) => {
    const path = join(home, 'state.db');
    const store = await openStore({ path, clock: systemClock });
    await store.services.add(aService(), aVersion(), event, 16);
    // As a copy of the whole folder, made while the database was open.
    const copy = join(home, 'copy.db');
    for (const suffix of ['', '-wal', '.seal']) copyFileSync(`${path}${suffix}`, `${copy}${suffix}`);
    const again = await openStore({ path: copy, clock: systemClock });
    expect(await again.services.list()).toHaveLength(1);
    expect(again.file?.replaced).toBeUndefined();
    await Promise.all([store.close(), again.close()]);
  }));

test('a file that is no database is refused and stays unchanged with its log', () =>
  withTempHome(async (home) => {
    const path = join(home, 'state.db');
    writeFileSync(path, 'nothing'.repeat(999));
    writeFileSync(`${path}-wal`, 'all that is left');
    await expect(openStore({ path, clock: systemClock })).rejects.toMatchObject({
      code: 'SVC_STATE_CORRUPT',
      hint: expect.stringContaining('svc controller sweep'),
    });
    expect([readFileSync(path, 'utf8'), readFileSync(`${path}-wal`, 'utf8')]).toEqual(['nothing'.repeat(999), 'all that is left']);
  }));
