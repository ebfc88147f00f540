import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../test/support/builders.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock, type Clock } from '../shared/clock.ts';
import { createStore, openStore } from './open-store.ts';
import { openSqlite } from './sqlite-driver.ts';
import type { Store } from './store.ts';

const open = (path: string, clock: Clock = systemClock): Promise<Store> => openStore({ path, clock });
const mode = (path: string): number => statSync(path).mode & 0o777;

/** Time that passes only while someone sleeps. */
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

test('the database, the files beside it and a folder made for it are private, whatever the umask', async () => {
  await withTempHome(async (home) => {
    const before = process.umask(0);
    const folder = join(home, 'new', 'folder');
    const store = await open(join(folder, 'state.db'));
    process.umask(before);
    await store.services.add(aService(), aVersion(), anEvent(), 16);
    const files = readdirSync(folder).toSorted();
    expect(files).toEqual(['state.db', 'state.db-shm', 'state.db-wal']);
    expect(files.map((file) => mode(join(folder, file)))).toEqual([0o600, 0o600, 0o600]);
    expect([mode(folder), mode(join(home, 'new'))]).toEqual([0o700, 0o700]);
    await store.close();
  });
});

test('a database that others can read is made private again', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    await (await open(path)).close();
    chmodSync(path, 0o644);
    await (await open(path)).close();
    expect(mode(path)).toBe(0o600);
  });
});

test('a file that is no database is refused and left alone', async () => {
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

test('a full disk is told as such, what was saved stays, and work goes on once there is space', async () => {
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

test('content that was damaged is reported by its column, without quoting it', async () => {
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

test('a writer waits for the lock of another process and lets the event loop go on meanwhile', async () => {
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

test('a lock that is never given back ends in an error that says so', async () => {
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
