import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aDaemonContext } from '../../test/support/daemon-context.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { servicePaths } from '../shared/paths.ts';
import { openStore } from '../store/open-store.ts';
import { Clusters } from './cluster/clusters.ts';
import { DaemonWatch } from './daemon-watch.ts';
import { ServiceProcesses } from './supervise/service-processes.ts';

test('a service that the database lacks keeps its port and keeps the daemon running', async () => {
  await withTempHome(async (home) => {
    const store = await openStore({ path: join(home, 'state.db'), clock: systemClock });
    try {
      const context = aDaemonContext(home, store);
      for (const [key, port] of [['feedbeef', 30_001] as const, ['ab0bafee', 30_002] as const]) {
        mkdirSync(servicePaths(context.paths, key).dir, { recursive: true });
        context.ports.take({ name: key, key, port });
      }
      // Only this service ever ran.
      writeFileSync(servicePaths(context.paths, 'feedbeef').reconcilerLock, '');
      const processes = new ServiceProcesses(context);
      const watch = new DaemonWatch(context, processes, new Clusters(context, processes.leftovers), 0, () => undefined);
      await watch.tick();
      expect(readdirSync(join(home, 'ports')).map((name) => Number.parseInt(name, 10))).toEqual([30_001]);
      expect(watch.isIdle).toBe(false);
    } finally {
      await store.close();
    }
  });
});

const days = (count: number): number => systemClock.now() - count * 86_400_000;

test('the daemon prunes old events of gone services, except of those whose folder is left', async () => {
  await withTempHome(async (home) => {
    const store = await openStore({ path: join(home, 'state.db'), clock: systemClock });
    try {
      const context = aDaemonContext(home, store);
      await store.events.append(anEvent({ subjectKey: 'old', at: days(31) }));
      await store.events.append(anEvent({ subjectKey: 'recent', at: days(29) }));
      await store.events.append(anEvent({ subjectKey: 'folder', at: days(31) }));
      mkdirSync(join(context.paths.clustersDir, 'folder'), { recursive: true });
      const processes = new ServiceProcesses(context);
      await new DaemonWatch(context, processes, new Clusters(context, processes.leftovers), 0, () => undefined).tick();
      const known = await Promise.all(['old', 'recent', 'folder'].map((key) => store.events.knows(key)));
      expect(known).toEqual([false, true, true]);
    } finally {
      await store.close();
    }
  });
});
