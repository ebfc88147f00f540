import { expect, test } from 'vitest';
import { describeStores } from '../../test/support/describe-stores.ts';
import { withStore } from '../../test/support/stores.ts';
import { recordRefusal, recordRunning } from '../domain/spot/zone-history.ts';

const hourMs = 3_600_000;

describeStores('zones', (driver) => {
  test('concurrent changes are all kept, and zones without a sign for weeks are forgotten', async () => {
    await withStore(driver, async (store, reopen) => {
      const other = await reopen();
      const now = 1_900_000_000_000;
      await store.zones.change((all) => ({ ...all, old: recordRunning(undefined, now - 24 * 30 * hourMs) }), now - 24 * 30 * hourMs);
      const at = (index: number): number => now + index * 2 * hourMs;
      await Promise.all(
        Array.from({ length: 6 }, (_, index) =>
          (index % 2 === 0 ? store : other).zones.change(
            (all) => ({ ...all, [`zone-${index % 3}`]: recordRefusal(all[`zone-${index % 3}`], at(index), false) }),
            at(index),
          ),
        ),
      );
      const all = await other.zones.list();
      expect(Object.keys(all).toSorted((a, b) => a.localeCompare(b))).toEqual(['zone-0', 'zone-1', 'zone-2']);
      expect(Object.values(all).map(({ refusals }) => refusals)).toEqual([2, 2, 2]);
      expect(await store.zones.list()).toEqual(all);
    });
  });
});
