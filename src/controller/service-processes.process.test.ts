import { existsSync, mkdirSync } from 'node:fs';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../test/support/builders.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { noFence } from '../shared/fence.ts';
import { homePaths, servicePaths } from '../shared/paths.ts';
import { systemRandom } from '../shared/random.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import type { DaemonContext } from './daemon-context.ts';
import { ServiceProcesses } from './service-processes.ts';

const nobody = (): Promise<never> => Promise.reject(new Error('no place is asked'));

/** A daemon's context without places. */
function aContext(home: string, store: Store): DaemonContext {
  return {
    paths: homePaths(home, process.getuid?.() ?? 0),
    store,
    clock: systemClock,
    random: systemRandom,
    log: pino({ level: 'silent' }),
    startedAt: 0,
    version: '1',
    serviceLimit: 16,
    host: undefined,
    term: undefined,
    fence: noFence,
    creating: new Set(),
    config: nobody,
    providers: () => Promise.resolve([]),
    states: () => Promise.resolve([]),
    provider: nobody,
  };
}

test('files of a service that is recorded while the records are read stay, and those of one that is in none go', async () => {
  await withTempHome(async (home) => {
    const store = await openStore({ path: `${home}/state.db`, clock: systemClock });
    try {
      const service = aService();
      const context = aContext(home, {
        ...store,
        services: {
          ...store.services,
          async list() {
            const read = await store.services.list();
            // As with a database whose answer is on its way for a while.
            if (!context.creating.delete(service.key)) return read;
            await store.services.add(service, aVersion(), anEvent(), 16);
            return read;
          },
        },
      });
      const [ours, stray] = [service.key, 'feedfeed'].map((key) => servicePaths(context.paths, key).dir);
      for (const dir of [ours ?? '', stray ?? '']) mkdirSync(dir, { recursive: true });
      context.creating.add(service.key);
      const processes = new ServiceProcesses(context);
      await processes.removeGone();
      await processes.removeGone();
      expect([existsSync(ours ?? ''), existsSync(stray ?? '')]).toEqual([true, false]);
    } finally {
      await store.close();
    }
  });
});
