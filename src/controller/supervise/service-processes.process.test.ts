import { existsSync, mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { aService, aVersion } from '../../../test/support/builders.ts';
import { aDaemonContext } from '../../../test/support/daemon-context.ts';
import { anEvent } from '../../../test/support/stores.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { servicePaths } from '../../shared/paths.ts';
import { openStore } from '../../store/open-store.ts';
import { ServiceProcesses } from './service-processes.ts';

test('only folders without a record go, even when a service is recorded meanwhile', async () => {
  await withTempHome(async (home) => {
    const store = await openStore({ path: `${home}/state.db`, clock: systemClock });
    try {
      const service = aService();
      const context = aDaemonContext(home, {
        ...store,
        services: {
          ...store.services,
          async list() {
            const read = await store.services.list();
            // Simulates a database whose answer arrives late.
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
