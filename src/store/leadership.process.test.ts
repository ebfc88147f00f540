import { expect, test } from 'vitest';
import { aReplica, aService, aVersion } from '../../test/support/builders.ts';
import { describeStores } from '../../test/support/describe-stores.ts';
import { anEvent, withStore } from '../../test/support/stores.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import type { LeaseLock, LeaseView } from '../domain/leadership.ts';
import { systemClock } from '../shared/clock.ts';
import { databaseLease, leaseAbove } from './database-lease.ts';
import { openStore } from './open-store.ts';

const { signal } = new AbortController();
describeStores('leadership', (driver) => {
  test('the lease is free at first, and each who takes it has the next term', async () => {
    await withStore(driver, async (store, reopen) => {
      const [a, b] = [databaseLease(store), databaseLease(await reopen())];
      const free = await a.read(signal);
      expect(free).toMatchObject({ holder: null, term: 0 });
      const taken = await a.write(free, 'a', 8_000, signal);
      expect(taken).toMatchObject({ holder: 'a', term: 1, durationMs: 8_000 });
      expect(await b.read(signal)).toEqual(taken);
      const takenOver = taken === undefined ? undefined : await b.write(taken, 'b', 5_000, signal);
      expect(takenOver).toMatchObject({ holder: 'b', term: 2, durationMs: 5_000 });
      expect(takenOver?.renewal).not.toBe(taken?.renewal);
    });
  });

  test('a renewal changes the renewal and nothing else', async () => {
    await withStore(driver, async (store) => {
      const lock = databaseLease(store);
      const taken = await lock.write(await lock.read(signal), 'a', 8_000, signal);
      if (taken === undefined) throw new Error('not taken');
      const renewed = await lock.write(taken, 'a', 8_000, signal);
      expect(renewed).toEqual({ ...taken, renewal: renewed?.renewal });
      expect(renewed?.renewal).not.toBe(taken.renewal);
      expect(await lock.read(signal)).toEqual(renewed);
    });
  });

  test('of several who saw the same one gets it, whether it was free or had run out', async () => {
    await withStore(driver, async (store, reopen) => {
      const locks = [databaseLease(store), databaseLease(await reopen()), databaseLease(await reopen())];
      for (const round of [1, 2]) {
        const seen = await Promise.all(locks.map((lock) => lock.read(signal)));
        const answers = await Promise.all(
          seen.map(async (view, index) => locks[index]?.write(view, `candidate ${index} of ${round}`, 8_000, signal)),
        );
        const winners = answers.filter((answer) => answer !== undefined);
        expect(winners).toHaveLength(1);
        expect(winners[0]).toMatchObject({ term: round });
        expect(await locks[0]?.read(signal)).toEqual(winners[0]);
      }
    });
  });

  test('a holder that was overtaken cannot renew', async () => {
    await withStore(driver, async (store) => {
      const lock = databaseLease(store);
      const taken = await lock.write(await lock.read(signal), 'a', 8_000, signal);
      if (taken === undefined) throw new Error('not taken');
      const other = await lock.write(taken, 'b', 8_000, signal);
      expect(await lock.write(taken, 'a', 8_000, signal)).toBeUndefined();
      expect(await lock.read(signal)).toEqual(other);
    });
  });

  test('nobody waits for the database longer than for its signal', async () => {
    await withStore(driver, async (store) => {
      await expect(databaseLease(store).read(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    });
  });

  test('every kind of write of an earlier term is refused, and changes nothing', async () => {
    await withStore(driver, async (store, reopen) => {
      await store.raiseTerm(4);
      const service = aService();
      await store.services.add(service, aVersion(), anEvent(), 16);
      const next = await reopen();
      await next.raiseTerm(5);
      const writes: readonly (() => Promise<unknown>)[] = [
        () => store.services.add(aService({ name: 'b', port: 30_500 }), aVersion({ service: 'b' }), anEvent(), 16),
        () => store.services.update(service, { reason: 'x' }, anEvent()),
        () => store.services.remove(service.name, service.key, anEvent()),
        () => store.replicas.add(service, aReplica(), anEvent()),
        () => store.replicas.prune(service.name, 1),
        () => store.events.append(anEvent()),
        () => store.files.addBlock('a', 'b', Buffer.from('c')),
        () => store.files.setTree('a', 'b', 'c'),
        () => store.files.remove('a'),
        () => store.raiseTerm(4),
      ];
      for (const write of writes) {
        await expect(write()).rejects.toMatchObject({
          code: 'SVC_NOT_LEADER',
          message: 'Another controller leads with term 5; this one was of term 4 and may not change anything any more.',
        });
      }
      expect(await next.services.list()).toEqual([service]);
      expect(await next.events.list({ subject: 'chat' })).toHaveLength(1);
      expect(await next.files.owners()).toEqual([]);
      // Reading harms nobody, and the leader writes as before.
      expect(await store.services.list()).toEqual([service]);
      await next.events.append(anEvent());
    });
  });

  test('a reconciler that was started for a term loses the right to write with it', async () => {
    await withTempHome(async (home) => {
      const where = { ...(await driver.make(home)), clock: systemClock };
      const [daemon, reconciler, next] = [await openStore(where), await openStore({ ...where, term: 1 }), await openStore(where)];
      try {
        await daemon.raiseTerm(1);
        await reconciler.events.append(anEvent());
        await next.raiseTerm(2);
        await expect(reconciler.events.append(anEvent())).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
      } finally {
        await Promise.all([daemon, reconciler, next].map((store) => store.close()));
      }
    });
  });

  test('of two that claim a term above the same one gets it', async () => {
    await withStore(driver, async (store, reopen) => {
      const [a, b] = [store.leadership, (await reopen()).leadership];
      expect((await Promise.all([a.claim(0, 5), b.claim(0, 5)])).toSorted()).toEqual([false, true]);
      expect(await a.claim(4, 9)).toBe(false);
      expect(await b.claim(5, 6)).toBe(true);
      expect(await a.read()).toMatchObject({ term: 6 });
    });
  });

  test('a lease that is kept elsewhere leads with terms of the database, however somebody edits it', async () => {
    await withStore(driver, async (store, reopen) => {
      await store.raiseTerm(7);
      const elsewhere = new EditableLease();
      const [a, b, c] = ['a', 'b', 'c'].map(() => leaseAbove(elsewhere.lock(), store.leadership));
      if (a === undefined || b === undefined || c === undefined) throw new Error('three were made');
      const first = await a.write(await a.read(signal), 'a', 8_000, signal);
      expect(first).toMatchObject({ holder: 'a', term: 8 });
      // Its holder knows better than what somebody wrote there.
      elsewhere.edit({ term: 2 });
      expect(await a.write(await a.read(signal), 'a', 8_000, signal)).toMatchObject({ holder: 'a', term: 8 });

      // Whoever takes it over has a term that nobody had, though the lease says one that a had.
      elsewhere.edit({ term: 7 });
      expect(await b.write(await b.read(signal), 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: 9 });
      const former = await reopen();
      await expect(former.raiseTerm(8)).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
      expect(await a.read(signal)).toMatchObject({ holder: 'b' });

      // As one that was deleted.
      elsewhere.edit({ term: 0, holder: null });
      expect(await c.write(await c.read(signal), 'c', 8_000, signal)).toMatchObject({ holder: 'c', term: 10 });
      elsewhere.edit({ term: 100 });
      expect(await b.write(await b.read(signal), 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: 101 });
    });
  });

  test('who took the lease and claims its term late does not claim above the next one, and one that was forestalled claims again', async () => {
    await withStore(driver, async (store) => {
      const elsewhere = new EditableLease();
      const second = leaseAbove(elsewhere.lock(), store.leadership);
      let term: number | undefined;
      const first = leaseAbove(elsewhere.lock(), {
        read: () => store.leadership.read(),
        async claim(from, to) {
          // It stands still for so long that another one leads by now.
          term = (await second.write(await second.read(signal), 'second', 8_000, signal))?.term;
          return store.leadership.claim(from, to);
        },
      });
      expect(await first.write(await first.read(signal), 'first', 8_000, signal)).toBeUndefined();
      expect(await store.leadership.read()).toMatchObject({ term });

      const third = leaseAbove(elsewhere.lock(), store.leadership);
      const taken = await elsewhere.lock().write(await elsewhere.lock().read(signal), 'third', 8_000, signal);
      // Its claim failed, or the answer to it was lost: the lease is its own already.
      expect(await third.write(taken ?? (await third.read(signal)), 'third', 8_000, signal)).toMatchObject({ holder: 'third', term: 3 });
    });
  });
});

/** A lease in memory that somebody edits. */
class EditableLease {
  #view: LeaseView = { holder: null, term: 0, renewal: '0', durationMs: 0 };

  edit(change: Partial<LeaseView>): void {
    this.#view = { ...this.#view, ...change, renewal: `${Number(this.#view.renewal) + 1}` };
  }

  lock(): LeaseLock {
    return {
      read: async () => this.#view,
      write: async (seen, holder, durationMs) => {
        if (seen.renewal !== this.#view.renewal) return undefined;
        this.edit({ holder, durationMs, term: seen.holder === holder ? seen.term : seen.term + 1 });
        return this.#view;
      },
    };
  }
}
