import { expect, test } from 'vitest';
import { describeStores } from '../../test/support/describe-stores.ts';
import { aService, aVersion } from '../../test/support/builders.ts';
import { anEvent, withStore } from '../../test/support/stores.ts';

describeStores('events', (driver) => {
  test('an appended event is read back with an ascending id', async () => {
    await withStore(driver, async (store) => {
      const event = anEvent({
        at: 1_900_000_000_123,
        replicaId: 7,
        from: 'PENDING',
        to: 'PROVISIONING',
        cause: 'launch-started',
        message: 'é "x"',
      });
      await store.events.append(event);
      await store.events.append(anEvent());
      const [first, second] = await store.events.list({ subject: 'chat' });
      expect(first).toEqual({ ...event, id: first?.id });
      expect(second?.id).toBeGreaterThan(first?.id ?? Infinity);
    });
  });

  test('a reused name lists the newest service; a key lists its own', async () => {
    await withStore(driver, async (store) => {
      await store.events.append(anEvent({ subjectKey: 'old', message: '1' }));
      await store.events.append(anEvent({ subjectKey: 'new', message: '2' }));
      await store.events.append(anEvent({ subject: 'other', subjectKey: 'x', message: '3' }));
      await store.events.append(anEvent({ subjectKey: 'new', message: '4' }));
      const messages = async (query: { subject: string; subjectKey?: string }): Promise<readonly string[]> =>
        (await store.events.list(query)).map(({ message }) => message);
      expect(await messages({ subject: 'chat' })).toEqual(['2', '4']);
      expect(await messages({ subject: 'chat', subjectKey: 'old' })).toEqual(['1']);
      expect(await messages({ subject: 'other' })).toEqual(['3']);
      expect(await messages({ subject: 'none' })).toEqual([]);
    });
  });

  test('a reader that continues after its last id gets each event once', async () => {
    await withStore(driver, async (store) => {
      for (let index = 0; index < 10; index += 1) await store.events.append(anEvent({ message: String(index) }));
      const met: string[] = [];
      let after = 0;
      for (;;) {
        const page = await store.events.list({ subject: 'chat', after, limit: 3 });
        if (page.length === 0) break;
        expect(page.length).toBeLessThanOrEqual(3);
        met.push(...page.map(({ message }) => message));
        after = page.at(-1)?.id ?? Infinity;
      }
      expect(met).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    });
  });

  test('old and surplus events of subjects without a record are pruned', async () => {
    await withStore(driver, async (store) => {
      expect(await store.events.pruneGone({ before: 5, keep: 0, except: [] })).toBe(0);
      const service = aService({ name: 'chat', key: 'living' });
      await store.services.add(service, aVersion({}), anEvent({ subjectKey: 'living', at: 1 }), 10);
      for (const [subjectKey, at] of [['folder', 1] as const, ['gone', 1] as const, ['gone', 5] as const, ['late', 6] as const])
        await store.events.append(anEvent({ subjectKey, at }));
      const kept = async (): Promise<readonly string[]> => {
        const keys = ['living', 'folder', 'gone', 'late'];
        const lists = await Promise.all(keys.map((subjectKey) => store.events.list({ subject: 'chat', subjectKey })));
        return lists.flat().map(({ subjectKey, at }) => `${subjectKey} ${at}`);
      };
      const except = ['folder'];
      expect(await store.events.pruneGone({ before: 5, keep: 10, except })).toBe(1);
      expect(await kept()).toEqual(['living 1', 'folder 1', 'gone 5', 'late 6']);
      expect(await store.events.pruneGone({ before: 5, keep: 1, except })).toBe(1);
      expect(await kept()).toEqual(['living 1', 'folder 1', 'late 6']);
      expect(await store.events.pruneGone({ before: 5, keep: 1, except })).toBe(0);
    });
  });
});
