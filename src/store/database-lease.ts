import { leaseDurationMs, type LeaseLock, type LeaseView } from '../domain/leadership.ts';
import { unlessAborted } from '../shared/unless-aborted.ts';
import type { LeadershipRepository, Store } from './store.ts';

/**
 * The lease that controllers with one database compete for, when nothing else decides who leads. What was sent before a signal aborted may still arrive: it is
 * a compare-and-set, so that does no harm.
 */
export function databaseLease(store: Store): LeaseLock {
  const { leadership } = store;
  return {
    read: (signal) => unlessAborted(leadership.read(), signal),
    write: (seen, holder, durationMs, signal) =>
      unlessAborted(seen.holder === holder ? leadership.renew(seen, durationMs) : leadership.take(seen, holder, durationMs), signal),
  };
}

/**
 * A lease that is kept elsewhere, with terms that come from the database: whoever takes it claims there a term above all that were before, whatever the lease
 * says of itself. Anybody may edit a lease, or delete it and so begin anew with 1; a term that comes twice would let a former leader's writes pass, and a
 * lower one would be refused for ever.
 */
export function leaseAbove(lock: LeaseLock, leadership: Pick<LeadershipRepository, 'read' | 'claim'>): LeaseLock {
  /** What this process leads with, once it does. */
  let held: { readonly holder: string; readonly term: number } | undefined;
  const withOwnTerm = (view: LeaseView): LeaseView =>
    view.holder === held?.holder && held !== undefined ? { ...view, term: held.term } : view;
  return {
    async read(signal) {
      const view = await lock.read(signal);
      if (view.holder !== null) return withOwnTerm(view);
      const { term } = await unlessAborted(leadership.read(), signal);
      // Somebody led before, and may do so still: the lease was deleted, or the holder's name taken out of it.
      return term === 0 ? view : { ...view, durationMs: Math.max(view.durationMs, leaseDurationMs) };
    },
    async write(seen, holder, durationMs, signal) {
      if (held?.holder === holder && seen.holder === holder) {
        const renewed = await lock.write(seen, holder, durationMs, signal);
        return renewed === undefined ? undefined : withOwnTerm(renewed);
      }
      // Before the lease is taken: who claims late, after the next one has taken it, must not claim above that one.
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
