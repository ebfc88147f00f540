import { leaseDurationMs, type LeaseLock, type LeaseView } from '../domain/leadership.ts';
import { unlessAborted } from '../shared/deadline.ts';
import type { LeadershipRepository, Store } from './store.ts';

/** Used when no other lease decides. A write that arrives after its signal aborted is harmless: a compare-and-set. */
export function databaseLease(store: Store): LeaseLock {
  const { leadership } = store;
  return {
    read: (signal) => unlessAborted(leadership.read(), signal),
    write: (seen, holder, durationMs, signal) =>
      unlessAborted(seen.holder === holder ? leadership.renew(seen, durationMs) : leadership.take(seen, holder, durationMs), signal),
  };
}

/**
 * A lease outside the database, with terms from it: its taker claims a term above all earlier ones. A user may
 * edit the lease, or delete it so that it starts again with 1. A repeated term would let a former leader's writes pass;
 * a lower one would be refused forever.
 */
export function leaseAbove(lock: LeaseLock, leadership: Pick<LeadershipRepository, 'read' | 'claim'>): LeaseLock {
  /** The holder and term with which this process leads; undefined while it does not lead. */
  let held: { readonly holder: string; readonly term: number } | undefined;
  const withOwnTerm = (view: LeaseView): LeaseView =>
    view.holder === held?.holder && held !== undefined ? { ...view, term: held.term } : view;
  return {
    async read(signal) {
      const view = await lock.read(signal);
      if (view.holder !== null) return withOwnTerm(view);
      const { term } = await unlessAborted(leadership.read(), signal);
      // An earlier leader may still lead: a user deleted the lease, or removed the holder's name from it.
      return term === 0 ? view : { ...view, durationMs: Math.max(view.durationMs, leaseDurationMs) };
    },
    async write(seen, holder, durationMs, signal) {
      if (held?.holder === holder && seen.holder === holder) {
        const renewed = await lock.write(seen, holder, durationMs, signal);
        return renewed === undefined ? undefined : withOwnTerm(renewed);
      }
      // Read before taking the lease. A process that claims late must not claim a higher term than the next leader.
      const { term: newest } = await unlessAborted(leadership.read(), signal);
      const taken = await lock.write({ ...seen, term: Math.max(seen.term, newest) }, holder, durationMs, signal);
      if (taken === undefined) return undefined;
      const term = Math.max(taken.term, newest + 1);
      if (!(await unlessAborted(leadership.claim(newest, term), signal))) return undefined;
      held = { holder, term };
      return { ...taken, term };
    },
  };
}
