import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { systemClock } from '../shared/clock.ts';
import { bootId } from '../shared/system/process-identity.ts';
import { withLaunchLock } from './launch-lock.ts';
import { waitFor } from '../../test/support/wait-for.ts';

const deps = (signal = new AbortController().signal, onWait = () => undefined) => ({ clock: systemClock, signal, onWait });

test('concurrent holders run one after another', async () => {
  await withTempHome(async (home) => {
    const file = join(home, 'lock');
    let inside = 0;
    const order: number[] = [];
    const one = (id: number) =>
      withLaunchLock(file, deps(), async () => {
        inside += 1;
        expect(inside).toBe(1);
        await systemClock.sleep(20);
        inside -= 1;
        order.push(id);
      });
    await Promise.all([1, 2, 3, 4].map(one));
    expect(order.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
    expect(existsSync(file)).toBe(false);
  });
});

test('the lock of a dead process is void', async () => {
  await withTempHome(async (home) => {
    const file = join(home, 'lock');
    const { pid } = spawnSync('true');
    writeFileSync(file, JSON.stringify({ pid, startTicks: 1, bootId: bootId() }));
    expect(await withLaunchLock(file, deps(), async () => 'mine')).toBe('mine');
  });
});

test('a wait for the lock is reported once and can be interrupted', async () => {
  await withTempHome(async (home) => {
    const file = join(home, 'lock');
    const interrupt = new AbortController();
    let waits = 0;
    await withLaunchLock(file, deps(), async () => {
      const waiting = withLaunchLock(
        file,
        deps(interrupt.signal, () => void (waits += 1)),
        async () => 'never',
      );
      await waitFor('the report', () => waits > 0);
      // Further tries report nothing.
      await systemClock.sleep(500);
      interrupt.abort();
      await expect(waiting).rejects.toMatchObject({ code: 'SVC_ABORTED' });
    });
    expect(waits).toBe(1);
  });
});
