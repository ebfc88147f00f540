import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { aService, aServiceSpec, aTask, aVersion } from '../../test/support/builders.ts';
import { killProcessesOf } from '../../test/support/leaks.ts';
import { reconcilersOf } from '../../test/support/processes.ts';
import { anEvent } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock } from '../shared/clock.ts';
import { isListenedOn } from '../shared/system/claim-socket.ts';
import { wholeEnv } from '../shared/env.ts';
import { homePaths, servicePaths } from '../shared/paths.ts';
import { programEntry } from '../shared/program-files.ts';
import { openStore } from '../store/open-store.ts';
import { endReconcilersOfReplaced, isStartedBySystemd } from './replaced-state.ts';

test('a stopped reconciler of a replaced database is killed before the new one opens', async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    const service = aService({ revision: 0 });
    const store = await openStore({ path: paths.database, clock: systemClock });
    const spec = aServiceSpec();
    const idle = { ...spec, replicaPolicy: { ...spec.replicaPolicy, minReplicas: 0 } };
    await store.services.add(service, aVersion({ task: aTask({ service: idle }) }), anEvent(), 16);
    await store.close();
    try {
      const argv = [programEntry('controller/service/main'), service.name, service.key];
      const child = spawn(process.execPath, argv, { stdio: 'ignore', env: { ...wholeEnv(), SVC_HOME: home } });
      const { promise: ended, resolve } = Promise.withResolvers<NodeJS.Signals | null>();
      child.once('exit', (_, signal) => resolve(signal));
      await waitFor('the reconciler', () => isListenedOn(servicePaths(paths, service.key).reconcilerSocket));
      child.kill('SIGSTOP');
      rmSync(paths.database);
      await endReconcilersOfReplaced(paths, pino({ level: 'silent' }));
      expect(reconcilersOf(home)).toEqual([]);
      expect(await ended).toBe('SIGKILL');
    } finally {
      await killProcessesOf(home);
    }
  });
});

test('only the process that systemd itself started counts as managed', () => {
  vi.stubEnv('SYSTEMD_EXEC_PID', '7');
  expect([isStartedBySystemd(7), isStartedBySystemd(8)]).toEqual([true, false]);
  vi.unstubAllEnvs();
  expect(isStartedBySystemd(7)).toBe(false);
});
