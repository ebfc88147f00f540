import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../test/support/builders.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { idsLeftAfterRestore, openStore } from './open-store.ts';

test('a copy made during writes of two processes is a whole state, and counts as restored', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'state.db');
    const [first, second] = [await openStore({ path, clock: systemClock }), await openStore({ path, clock: systemClock })];
    await first.services.add(aService(), aVersion(), anEvent(), 16);
    const end = new AbortController();
    let written = 1;
    const write = async (store: typeof first): Promise<void> => {
      // Each change of the service comes with an event in one transaction.
      while (!end.signal.aborted) {
        const seen = await store.services.get('chat');
        if (seen === undefined) throw new Error('the service is gone');
        const changed = await store.services.update(seen, { version: seen.version + 1 }, anEvent());
        if (changed !== undefined) written += 1;
        // Without a pause, the writers leave no turn for timers.
        await systemClock.sleep(1);
      }
    };
    const writers = [write(first), write(second)];
    const copies = [0, 1, 2, 3, 4].map((number) => join(home, `copy-${number}`, 'state.db'));
    for (const copy of copies) {
      mkdirSync(join(copy, '..'));
      await first.copyTo(copy);
      await systemClock.sleep(10);
    }
    end.abort();
    await Promise.all(writers);
    await Promise.all([first.close(), second.close()]);
    expect(written).toBeGreaterThan(copies.length);

    for (const copy of copies) {
      expect(statSync(copy).mode & 0o777).toBe(0o600);
      expect(existsSync(`${copy}.seal`)).toBe(true);
      const raw = new DatabaseSync(copy, { readOnly: true });
      expect(raw.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
      raw.close();
      const store = await openStore({ path: copy, clock: systemClock });
      const service = await store.services.get('chat');
      const events = await store.events.list({ subject: 'chat' });
      expect(events).toHaveLength(service?.version ?? 0);
      expect(service?.nextReplicaId).toBeGreaterThan(idsLeftAfterRestore);
      expect(await store.restoredAt()).not.toBeNull();
      await store.close();
    }
  });
});
