import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../test/support/builders.ts';
import { fillDisk, withSmallDisk } from '../../test/support/small-disk.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock, type Clock } from '../shared/clock.ts';
import { createStore, openStore } from './open-store.ts';
import { openSqlite } from './sqlite-driver.ts';
import type { Store } from './store.ts';

const open = (path: string, clock: Clock = systemClock): Promise<Store> => openStore({ path, clock });
const mode = (path: string): number => statSync(path).mode & 0o777;

/** Time that passes only during a sleep. */
function skippingClock(): Clock {
  let now = 0;
  return {
    ...systemClock,
    monotonic: () => now,
    sleep(ms) {
      now += ms;
      return Promise.resolve();
    },
  };
}

test('the database, its companion files and its new folder are private under any umask', async () => {
  await withTempHome(async (home) => {
    const before = process.umask(0);
    const folder = join(home, 'new', 'folder');
    const store = await open(join(folder, 'state.db'));
    process.umask(before);
    await store.services.add(aService(), aVersion(), anEvent(), 16);
    const files = readdirSync(folder).toSorted();
    expect(files).toEqual(['state.db', 'state.db-shm', 'state.db-wal', 'state.db.seal']);
    expect(files.map((file) => mode(join(folder, file)))).toEqual([0o600, 0o600, 0o600, 0o600]);
    expect([mode(folder), mode(join(home, 'new'))]).toEqual([0o700, 0o700]);
    await store.close();
  });
});

test('a database readable by others is made private again', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    await (await open(path)).close();
    chmodSync(path, 0o644);
    await (await open(path)).close();
    expect(mode(path)).toBe(0o600);
  });
});

test('a file that is no database is refused and not changed', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    writeFileSync(path, 'hello, this is a text\n'.repeat(1_000));
    await expect(open(path)).rejects.toMatchObject({
      code: 'SVC_STATE_CORRUPT',
      message: `The state database ${path} cannot be read: file is not a database.`,
    });
    expect(readdirSync(home)).toEqual(['state.db']);
    expect(statSync(path).size).toBe(22_000);
  });
});

test('a path that cannot be a file is refused with the reason', async () => {
  await withTempHome(async (home) => {
    mkdirSync(join(home, 'state.db'));
    await expect(open(join(home, 'state.db'))).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE' });
    writeFileSync(join(home, 'file'), '');
    await expect(open(join(home, 'file', 'state.db'))).rejects.toMatchObject({ code: 'SVC_HOME_UNUSABLE' });
  });
});

test('a full disk is reported, data is kept, and writes succeed once space exists', async () => {
  await withTempHome(async (home) => {
    const driver = await openSqlite(join(home, 'state.db'), systemClock);
    const store = await createStore(driver, systemClock);
    const service = aService();
    await store.services.add(service, aVersion(), anEvent(), 16);
    await sql`pragma max_page_count = 1`.execute(driver.db);
    const long = { reason: 'x'.repeat(100_000) };
    await expect(store.services.update(service, long, anEvent())).rejects.toMatchObject({ code: 'SVC_NO_SPACE' });
    expect(await store.services.get('chat')).toEqual(service);
    await sql`pragma max_page_count = 100000`.execute(driver.db);
    expect(await store.services.update(service, long, anEvent())).toMatchObject(long);
    await store.close();
  });
});

test.skipIf(process.getuid?.() !== 0)('on a completely full disk, a store with reserved space can still write', async () => {
  await withTempHome(async (home) => {
    await withSmallDisk(home, 'size=40m', async () => {
      const store = await open(join(home, 'state.db'));
      let service = aService();
      await store.services.add(service, aVersion(), anEvent(), 16);
      await store.keepOwnSpace();
      fillDisk(join(home, 'junk'));
      for (let change = 0; change < 500; change += 1) {
        service = (await store.services.update(service, { reason: `change ${change}` }, anEvent())) ?? service;
      }
      expect((await store.services.get('chat'))?.reason).toBe('change 499');
      await store.close();
    });
  });
});

test('damaged content is reported by its column without quoting it', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    const store = await open(path);
    await store.services.add(aService(), aVersion(), anEvent(), 16);
    const raw = new DatabaseSync(path);
    for (const damaged of ['{"envs": s3cret', '["s3cret"]', 'null', '{"resources":3}']) {
      raw.prepare('update versions set task = ?').run(damaged);
      await expect(store.services.version('chat', 1)).rejects.toMatchObject({
        code: 'SVC_STATE_CORRUPT',
        message: 'The state database has unreadable content in versions.task.',
        cause: undefined,
      });
    }
    raw.close();
    await store.close();
  });
});

test("a writer waits for another process's lock without blocking the event loop", async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    const store = await open(path);
    const raw = new DatabaseSync(path);
    raw.exec('begin immediate');
    const adding = store.services.add(aService(), aVersion(), anEvent(), 16);
    const first = await Promise.race([adding, sleep(30, 'the event loop')]);
    expect(first).toBe('the event loop');
    raw.exec('commit');
    raw.close();
    await adding;
    expect(await store.services.list()).toHaveLength(1);
    await store.close();
  });
});

test('a lock that is never released ends in SVC_STATE_BUSY', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    const store = await open(path, skippingClock());
    const raw = new DatabaseSync(path);
    raw.exec('begin immediate');
    await expect(store.events.append(anEvent())).rejects.toMatchObject({ code: 'SVC_STATE_BUSY' });
    expect(await store.services.list()).toEqual([]);
    raw.close();
    await store.events.append(anEvent());
    await store.close();
  });
});
