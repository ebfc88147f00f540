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
  test('the lease is free at first, and each holder gets the next term', async () => {
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

  test("a renewal changes only the lease's renewal", async () => {
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

  test('of several candidates for the same lease, free or expired, one gets it', async () => {
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

  test('a holder that lost the lease cannot renew it', async () => {
    await withStore(driver, async (store) => {
      const lock = databaseLease(store);
      const taken = await lock.write(await lock.read(signal), 'a', 8_000, signal);
      if (taken === undefined) throw new Error('not taken');
      const other = await lock.write(taken, 'b', 8_000, signal);
      expect(await lock.write(taken, 'a', 8_000, signal)).toBeUndefined();
      expect(await lock.read(signal)).toEqual(other);
    });
  });

  test('a call waits for the database no longer than its signal', async () => {
    await withStore(driver, async (store) => {
      await expect(databaseLease(store).read(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
    });
  });

  test('every kind of write with an earlier term is refused without effect', async () => {
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
      // Reads are still allowed, and the leader writes as before.
      expect(await store.services.list()).toEqual([service]);
      await next.events.append(anEvent());
    });
  });

  test('a reconciler started for a term cannot write after the next term', async () => {
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

  test('of two claims above the same term one succeeds', async () => {
    await withStore(driver, async (store, reopen) => {
      const [a, b] = [store.leadership, (await reopen()).leadership];
      expect((await Promise.all([a.claim(0, 5), b.claim(0, 5)])).toSorted()).toEqual([false, true]);
      expect(await a.claim(4, 9)).toBe(false);
      expect(await b.claim(5, 6)).toBe(true);
      expect(await a.read()).toMatchObject({ term: 6 });
    });
  });

  test('an external lease gets terms from the database, whatever a user edits', async () => {
    await withStore(driver, async (store, reopen) => {
      await store.raiseTerm(7);
      const externalLease = new EditableLease();
      const [a, b, c] = ['a', 'b', 'c'].map(() => leaseAbove(externalLease.lock(), store.leadership));
      if (a === undefined || b === undefined || c === undefined) throw new Error('three were made');
      const first = await a.write(await a.read(signal), 'a', 8_000, signal);
      expect(first).toMatchObject({ holder: 'a', term: 8 });
      // The holder uses its own term, not the edited one.
      externalLease.edit({ term: 2 });
      expect(await a.write(await a.read(signal), 'a', 8_000, signal)).toMatchObject({ holder: 'a', term: 8 });

      // The next holder gets an unused term, although the lease shows a term that `a` had.
      externalLease.edit({ term: 7 });
      expect(await b.write(await b.read(signal), 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: 9 });
      const former = await reopen();
      await expect(former.raiseTerm(8)).rejects.toMatchObject({ code: 'SVC_NOT_LEADER' });
      expect(await a.read(signal)).toMatchObject({ holder: 'b' });

      // Simulates a deleted lease.
      externalLease.edit({ term: 0, holder: null });
      expect(await c.write(await c.read(signal), 'c', 8_000, signal)).toMatchObject({ holder: 'c', term: 10 });
      externalLease.edit({ term: 100 });
      expect(await b.write(await b.read(signal), 'b', 8_000, signal)).toMatchObject({ holder: 'b', term: 101 });
    });
  });

  test("a late claim does not exceed the next leader's term and can be repeated", async () => {
    await withStore(driver, async (store) => {
      const externalLease = new EditableLease();
      const second = leaseAbove(externalLease.lock(), store.leadership);
      let term: number | undefined;
      const first = leaseAbove(externalLease.lock(), {
        read: () => store.leadership.read(),
        async claim(from, to) {
          // The first process pauses for so long that the second one leads.
          term = (await second.write(await second.read(signal), 'second', 8_000, signal))?.term;
          return store.leadership.claim(from, to);
        },
      });
      expect(await first.write(await first.read(signal), 'first', 8_000, signal)).toBeUndefined();
      expect(await store.leadership.read()).toMatchObject({ term });

      const third = leaseAbove(externalLease.lock(), store.leadership);
      const taken = await externalLease.lock().write(await externalLease.lock().read(signal), 'third', 8_000, signal);
      // The claim failed, or its response was lost: the third process already holds the lease.
      expect(await third.write(taken ?? (await third.read(signal)), 'third', 8_000, signal)).toMatchObject({ holder: 'third', term: 3 });
    });
  });
});

/** A lease in memory that the test edits. */
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
