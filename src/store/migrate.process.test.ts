import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { schemaVersion } from '../domain/backup.ts';
import { systemClock } from '../shared/clock.ts';
import type { Driver } from './driver.ts';
import { migrate, type Migration } from './migrate.ts';
import { migrations } from './migrations/all.ts';
import { openSqlite } from './sqlite-driver.ts';

const addsTable = (version: number): Migration => ({
  version,
  name: `adds-t${version}`,
  async up(writer) {
    await writer.schema.createTable(`t${version}`).addColumn('a', 'text').execute();
  },
});

async function withDriver(use: (driver: Driver) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const driver = await openSqlite(join(home, 'state.db'), systemClock);
    try {
      await use(driver);
    } finally {
      await driver.close();
    }
  });
}

async function tables(driver: Driver): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'table' and name like 't_'`.execute(driver.db);
  return rows.map(({ name }) => name).toSorted();
}

test('versions count from 1 without gaps', () => {
  expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
  // Backups name this version.
  expect(schemaVersion).toBe(migrations.length);
});

test('only missing migrations run, in order', async () => {
  await withDriver(async (driver) => {
    await migrate(driver, [addsTable(1)], systemClock);
    await migrate(driver, [addsTable(1), addsTable(2), addsTable(3)], systemClock);
    await migrate(driver, [addsTable(1), addsTable(2), addsTable(3)], systemClock);
    expect(await tables(driver)).toEqual(['t1', 't2', 't3']);
    const steps = await driver.db.selectFrom('migrations').select(['version', 'name']).execute();
    expect(steps.map(({ version, name }) => `${version} ${name}`)).toEqual(['1 adds-t1', '2 adds-t2', '3 adds-t3']);
  });
});

test('stored events get the current names of their causes', async () => {
  await withDriver(async (driver) => {
    await migrate(driver, migrations.slice(0, 3), systemClock);
    const event = { at: 1, subject: 'chat', subject_key: 'k', message: 'm' };
    for (const cause of ['wanted', 'place-gave', 'place-refused', 'machine-heard', 'given-back', 'user'])
      await driver.write((writer) =>
        writer
          .insertInto('events')
          .values({ ...event, cause })
          .execute(),
      );
    await migrate(driver, migrations, systemClock);
    const rows = await driver.db.selectFrom('events').select('cause').orderBy('id').execute();
    const expected = ['replica-requested', 'machine-created', 'launch-refused', 'machine-responsive', 'machine-released', 'user'];
    expect(rows.map(({ cause }) => cause)).toEqual(expected);
  });
});

test('a failed migration leaves the schema unchanged', async () => {
  await withDriver(async (driver) => {
    await migrate(driver, [addsTable(1)], systemClock);
    const failing: Migration = { version: 3, name: 'fails', up: () => Promise.reject(new Error('no')) };
    await expect(migrate(driver, [addsTable(1), addsTable(2), failing], systemClock)).rejects.toThrow('no');
    expect(await tables(driver)).toEqual(['t1']);
    await migrate(driver, [addsTable(1), addsTable(2)], systemClock);
    expect(await tables(driver)).toEqual(['t1', 't2']);
  });
});

test('a database of a newer svc version is refused and not changed', async () => {
  await withDriver(async (driver) => {
    await migrate(driver, [addsTable(1), addsTable(2)], systemClock);
    await expect(migrate(driver, [addsTable(1)], systemClock)).rejects.toMatchObject({
      code: 'SVC_VERSION_MISMATCH',
      message: 'The state database has schema 2; this version of svc knows schemas up to 1.',
    });
    expect(await tables(driver)).toEqual(['t1', 't2']);
  });
});
