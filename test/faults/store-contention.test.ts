import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import type { HammerReport } from '../support/store-hammer.ts';
import { describeStores } from '../support/describe-stores.ts';
import { withTempHome } from '../support/temp-home.ts';
import { aService, aVersion } from '../support/builders.ts';
import { anEvent } from '../support/stores.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { wholeEnv } from '../../src/shared/env.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';

const script = new URL('../support/store-hammer.ts', import.meta.url).pathname;
const started = new Set<ChildProcess>();

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started.clear();
});

type StoreLocation = Pick<StoreOptions, 'path' | 'database'>;

function hammer(
  { path, database = '' }: StoreLocation,
  ...args: readonly string[]
): ChildProcess & { readonly stdout: NodeJS.ReadableStream; readonly stderr: NodeJS.ReadableStream } {
  const env = { ...wholeEnv(), SVC_DATABASE: database };
  const child = spawn(process.execPath, [script, path, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env });
  started.add(child);
  return child;
}

async function report(location: StoreLocation, worker: string, times: number): Promise<HammerReport> {
  const child = hammer(location, worker, 'compete', String(times));
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (errors !== '') throw new Error(errors);
  return JSON.parse(output);
}

describeStores('several processes', (driver) => {
  test('concurrent writers of a new database lose nothing and see no lock', async () => {
    await withTempHome(async (home) => {
      const location = await driver.make(home);
      const times = 60;
      const reports = await Promise.all(['a', 'b', 'c'].map((worker) => report(location, worker, times)));

      const store = await openStore({ ...location, clock: systemClock });
      try {
        // 18 services were requested on 4 ports; 3 are allowed.
        const services = await store.services.list();
        const names = services.map(({ name }) => name);
        expect(names).toContain('chat');
        expect(new Set(names).size).toBe(services.length);
        expect(new Set(services.map(({ port }) => port)).size).toBe(services.length);
        expect(services.length).toBe(3);
        const refused = reports.flatMap((one) => one.refused);
        expect(refused).toHaveLength(18 - services.length);
        expect(refused.filter((code) => !['SVC_NAME_IN_USE', 'SVC_PORT_BUSY', 'SVC_TOO_MANY_SERVICES'].includes(code))).toEqual([]);

        const chat = await store.services.get('chat');
        const added = reports.flatMap(({ replicaIds }) => replicaIds).toSorted((a, b) => a - b);
        const everyId = Array.from({ length: 3 * times }, (_, index) => index + 1);
        expect(added).toEqual(everyId);
        expect((await store.replicas.list('chat')).map(({ id }) => id)).toEqual(everyId);
        expect(chat).toMatchObject({ version: 1 + 3 * times, nextReplicaId: 1 + 3 * times, revision: 1 + 6 * times });
        const causes = (await store.events.list({ subject: 'chat' })).map(({ cause }) => cause);
        expect(causes.filter((cause) => cause === 'changed')).toHaveLength(3 * times);
        expect(causes.filter((cause) => cause === 'added')).toHaveLength(3 * times);
      } finally {
        await store.close();
      }
    });
  });

  test('saved state survives kill -9 at any point, whole or not at all', async () => {
    await withTempHome(async (home) => {
      const location = await driver.make(home);
      const first = await openStore({ ...location, clock: systemClock });
      await first.services.add(aService(), aVersion(), anEvent(), 16);
      await first.close();
      for (const lines of [1, 7, 40]) {
        const child = hammer(location, 'a', 'count');
        let output = '';
        for await (const piece of child.stdout) {
          output += String(piece);
          if (output.split('\n').length > lines) child.kill('SIGKILL');
        }
        const saved = Number(output.split('\n').at(-2));
        expect(saved).toBeGreaterThan(1);

        const store = await openStore({ ...location, clock: systemClock });
        // A server may still execute the last change of the killed process. Later writers wait for it.
        await store.events.append(anEvent({ subject: 'other', subjectKey: 'other' }));
        const service = await store.services.get('chat');
        const events = await store.events.list({ subject: 'chat' });
        await store.close();
        expect(service?.version).toBeGreaterThanOrEqual(saved);
        expect(service?.version).toBe(events.length);
      }
    });
  });
});
