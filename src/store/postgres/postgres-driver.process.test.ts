import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { aService, aVersion } from '../../../test/support/builders.ts';
import { selfSigned } from '../../../test/support/certificate.ts';
import { startCuttingProxy } from '../../../test/support/cutting-proxy.ts';
import { needs } from '../../../test/support/needs.ts';
import { closeSharedPostgres, newSchema, withPostgres } from '../../../test/support/postgres.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import type { Writer } from '../driver.ts';
import { insertEvent } from '../event-repository.ts';
import { createStore, openStore } from '../open-store.ts';
import type { Store } from '../store.ts';
import { openPostgres } from './postgres-driver.ts';

const open = (database: string): Promise<Store> => openStore({ path: '', database, clock: systemClock });

async function withOpen<Result>(opening: Promise<Store>, use: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await opening;
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Waits ten times as long for an unreachable server, because the start time of a server is not part of this test. */
const patientClock = { ...systemClock, monotonic: () => systemClock.monotonic() / 10 };

const causesOf = async (store: Store): Promise<readonly string[]> =>
  (await store.events.list({ subject: 'chat' })).map(({ cause }) => cause);

needs('postgres', () => {
  afterAll(closeSharedPostgres);

  test('stores unusual text and numbers as large as times', async () => {
    await withOpen(open(await newSchema()), async (store) => {
      const message = 'A log with \0 in it, a \u{1f600}, half of one \ud83d, and "quotes\\".';
      await store.events.append(anEvent({ at: Number.MAX_SAFE_INTEGER, message }));
      const [event] = await store.events.list({ subject: 'chat' });
      const kept = 'A log with � in it, a \u{1f600}, half of one �, and "quotes\\".';
      expect(event).toMatchObject({ id: 1, at: Number.MAX_SAFE_INTEGER, message: kept });
    });
  });

  test('uses its own schema: one database may hold several, and other data', async () => {
    await withPostgres(async (server) => {
      await server.run('create table public.services (mine text)');
      await withOpen(open(server.url()), (store) =>
        withOpen(open(server.url({ schema: 'team_a' })), async (other) => {
          await store.services.add(aService(), aVersion(), anEvent(), 16);
          expect(await other.services.list()).toEqual([]);
          expect(await store.services.list()).toHaveLength(1);
          expect(await server.run('select * from public.services')).toEqual([]);
        }),
      );
    });
  });

  test('needs only rights on its own schema once that exists', async () => {
    await withPostgres(async (server) => {
      await server.run("create role team login password 'pw'; create schema svc authorization team");
      const url = `postgres://team:pw@127.0.0.1:${server.port}/svc`;
      await withOpen(open(url), (store) => store.events.append(anEvent()));
      await expect(open(`${url}?schema=other`)).rejects.toMatchObject({
        code: 'SVC_DATABASE_REFUSED',
        message: `The state database at postgres://127.0.0.1:${server.port}/svc refuses: permission denied for database svc.`,
      });
    });
  });

  test('waits while its server restarts or recovers from a crash', async () => {
    await withPostgres(async (server) => {
      await withOpen(openStore({ path: '', database: server.url(), clock: patientClock }), async (store) => {
        for (const mode of ['fast', 'immediate'] as const) {
          await store.events.append(anEvent({ cause: `before ${mode}` }));
          await server.stop(mode);
          const later = [store.events.append(anEvent({ cause: `during ${mode}` })), store.services.list()];
          await server.start();
          await Promise.all(later);
        }
        expect(await causesOf(store)).toEqual(['before fast', 'during fast', 'before immediate', 'during immediate']);
      });
    });
  });

  test('reports a long outage of its server, and works again afterwards', async () => {
    await withPostgres(async (server) => {
      await withOpen(open(server.url()), async (store) => {
        await server.stop();
        const unavailable = { code: 'SVC_DATABASE', kind: 'transient' };
        await Promise.all([
          expect(store.services.list()).rejects.toMatchObject(unavailable),
          expect(store.events.append(anEvent())).rejects.toMatchObject(unavailable),
          expect(store.events.append(anEvent())).rejects.toMatchObject(unavailable),
          expect(open(server.url())).rejects.toMatchObject(unavailable),
        ]);
        await server.start();
        await store.events.append(anEvent({ cause: 'again' }));
        expect(await causesOf(store)).toEqual(['again']);
      });
    });
  });

  test.each(['before', 'after'] as const)('commits a change once when the connection breaks %s its commit arrived', async (when) => {
    const url = new URL(await newSchema());
    const proxy = await startCuttingProxy(Number(url.port));
    try {
      url.port = String(proxy.port);
      await withOpen(open(url.href), async (store) => {
        for (const cause of ['one', 'two']) {
          proxy.cutAt('commit', when);
          await store.events.append(anEvent({ cause }));
        }
        expect(await causesOf(store)).toEqual(['one', 'two']);
      });
    } finally {
      await proxy.close();
    }
  });

  test('restarts a change after a broken connection, and repeats reads', async () => {
    const url = new URL(await newSchema());
    const proxy = await startCuttingProxy(Number(url.port));
    try {
      url.port = String(proxy.port);
      await withOpen(open(url.href), async (store) => {
        for (const words of ['begin', 'pg_advisory_xact_lock', 'insert into', 'versions']) {
          proxy.cutAt(words, 'after');
          const name = `s-${words.replaceAll(/\W/g, '-')}`;
          const port = 30_000 + words.length;
          await store.services.add(aService({ name, port }), aVersion({ service: name }), anEvent({ subject: name }), 16);
          expect(await store.events.list({ subject: name })).toHaveLength(1);
        }
        proxy.cutAt('select', 'after');
        expect(await store.services.list()).toHaveLength(4);
      });
    } finally {
      await proxy.close();
    }
  });

  test('releases the lock of an idle writer, which then restarts its change', async () => {
    const url = await newSchema();
    const driver = await openPostgres(url, systemClock);
    await withOpen(createStore(driver, systemClock), (store) =>
      withOpen(open(url), async (other) => {
        const begun = Promise.withResolvers<void>();
        const goOn = Promise.withResolvers<void>();
        const seen: (readonly string[])[] = [];
        const slow = driver.write(async (writer: Writer) => {
          const events = await writer.selectFrom('events').select('cause').orderBy('id').execute();
          seen.push(events.map(({ cause }) => cause));
          await insertEvent(writer, anEvent({ cause: 'slow' }));
          begun.resolve();
          await goOn.promise;
        });
        await begun.promise;
        await other.events.append(anEvent({ cause: 'quick' }));
        goOn.resolve();
        await slow;
        expect(seen).toEqual([[], ['quick']]);
        expect(await causesOf(store)).toEqual(['quick', 'slow']);
      }),
    );
  });

  test('refuses a wrong password, database or encoding without showing the password', async () => {
    await withPostgres(async (server) => {
      await server.run("create database old encoding 'LATIN1' template template0");
      const address = `postgres://127.0.0.1:${server.port}`;
      const wrong = new URL(server.url());
      wrong.password = 'wrong-geheim';
      const missingOne = new URL(server.url());
      missingOne.pathname = '/nowhere';
      const old = new URL(server.url());
      old.pathname = '/old';
      const refusals = await Promise.all(
        [wrong, missingOne, old].map(async (url) => {
          const refusal: unknown = await open(url.href).catch((error: unknown) => error);
          return inspect(refusal, { depth: 5, showHidden: true });
        }),
      );
      expect(refusals).toEqual([
        expect.stringContaining(`The state database at ${address}/svc refuses: password authentication failed for user "svc".`),
        expect.stringContaining(`The state database at ${address}/nowhere refuses: database "nowhere" does not exist.`),
        expect.stringContaining(`The state database at ${address}/old keeps text as LATIN1, which cannot hold every character.`),
      ]);
      for (const shown of refusals) {
        expect(shown).toContain('SVC_DATABASE_REFUSED');
        expect(shown).not.toMatch(/geheim|pass: w|pass%3A/);
      }
    });
  });

  test('uses TLS as its address requests', async () => {
    await withTempHome(async (home) => {
      const trusted = join(home, 'trusted.pem');
      const other = join(home, 'other.pem');
      const certificate = selfSigned();
      writeFileSync(trusted, certificate.cert);
      writeFileSync(other, selfSigned().cert);
      await withPostgres(
        async (server) => {
          const isEncrypted = (parameters: Readonly<Record<string, string>>): Promise<boolean> =>
            withOpen(open(server.url(parameters)), async () => {
              const rows = await server.run(
                "select bool_and(ssl) as ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'svc'",
              );
              return rows[0]?.['ssl'] === true;
            });
          expect(await isEncrypted({})).toBe(false);
          expect(await isEncrypted({ sslmode: 'prefer' })).toBe(true);
          expect(await isEncrypted({ sslmode: 'require' })).toBe(true);
          expect(await isEncrypted({ sslmode: 'verify-full', sslrootcert: trusted })).toBe(true);
          const refused = { code: 'SVC_DATABASE_REFUSED' };
          await expect(isEncrypted({ sslmode: 'verify-full' })).rejects.toMatchObject(refused);
          await expect(isEncrypted({ sslmode: 'verify-ca', sslrootcert: other })).rejects.toMatchObject(refused);
        },
        {},
        certificate,
      );
      await withPostgres(async (server) => {
        await withOpen(open(server.url({ sslmode: 'prefer' })), (store) => store.events.append(anEvent()));
        await expect(open(server.url({ sslmode: 'require' }))).rejects.toMatchObject({
          code: 'SVC_DATABASE_REFUSED',
          message: `The state database at postgres://127.0.0.1:${server.port}/svc refuses: The server does not support SSL connections.`,
        });
      });
    });
  });
});
