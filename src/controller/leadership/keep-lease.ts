import {
  decideLease,
  leadsUntil,
  leaseCandidate,
  leaseDurationMs,
  leaseLookMs,
  leaseReleaseMs,
  sawLease,
  wroteLease,
  type LeaseLock,
  type LeaseState,
  type LeaseView,
} from '../../domain/leadership.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { SvcError } from '../../shared/errors.ts';

/** How long a read or write of the lease may take, ms: several must fit into the time that a lease holds. */
const callMs = 2_000;
/** Pause after one that failed, ms. */
const retryMs = 250;
/** How often giving the lease back is tried. */
const releaseAttempts = 3;
const releaseCallMs = 1_000;

/** What keeping a lease needs and tells. */
export interface LeaseKeeping {
  readonly lock: LeaseLock;
  /** Unique to this process. */
  readonly self: string;
  readonly clock: Clock;
  /** It holds the lease until then (monotonic ms): when it has got it, and after each renewal. */
  held(term: number, untilMs: number): void;
  /** Another one holds the lease and has been seen to renew it. */
  otherLeads(holder: string): void;
  /** A read or write failed; it is tried again. */
  failed(error: unknown): void;
}

/** Asks for a lease and renews it until it is lost, which gives back why; or until the signal aborts: then it is given back at once. */
export async function keepLease(keeping: LeaseKeeping, signal: AbortSignal): Promise<string | undefined> {
  const { clock } = keeping;
  let state = leaseCandidate(keeping.self);
  while (!signal.aborted) {
    const decision = decideLease(state, clock.monotonic());
    if (decision.action === 'lost') return decision.why;
    if (decision.action === 'wait') await clock.sleep(decision.forMs, signal);
    if (signal.aborted) break;
    try {
      if (decision.action === 'take' || decision.action === 'renew') state = await write(keeping, state, decision.seen, signal);
      else if (decision.action === 'look' || state.held === undefined) state = await look(keeping, state, signal);
    } catch (error) {
      if (signal.aborted) break;
      keeping.failed(error);
      await clock.sleep(state.held === undefined ? leaseLookMs : retryMs, signal);
    }
  }
  await release(keeping, state);
  return undefined;
}

/**
 * The same lease for the successor of a holder that is known to be dead: there is nothing to wait for. What that one started and still lives is of an older
 * term, and held off like any other.
 */
export function leaseAfter(lock: LeaseLock, dead: string | undefined): LeaseLock {
  if (dead === undefined) return lock;
  return {
    async read(signal) {
      const view = await lock.read(signal);
      return view.holder === dead ? { ...view, durationMs: 0 } : view;
    },
    write: (...args) => lock.write(...args),
  };
}

async function look(keeping: LeaseKeeping, state: LeaseState, signal: AbortSignal): Promise<LeaseState> {
  const view = await limited(keeping.clock, callMs, (limit) => keeping.lock.read(limit), signal);
  const before = state.seen?.view;
  const isRenewal = before !== undefined && before.holder === view.holder && before.renewal !== view.renewal;
  if (isRenewal && view.holder !== null && view.holder !== keeping.self) keeping.otherLeads(view.holder);
  return sawLease(state, view, keeping.clock.monotonic());
}

async function write(keeping: LeaseKeeping, state: LeaseState, seen: LeaseView, signal: AbortSignal): Promise<LeaseState> {
  const { clock, lock, self } = keeping;
  const sentAt = clock.monotonic();
  // A renewal that comes too late is worth nothing: the loss has to be told in time.
  const leftMs = (leadsUntil(state) ?? Number.POSITIVE_INFINITY) - sentAt;
  const written = await limited(
    clock,
    Math.max(1, Math.min(callMs, leftMs)),
    (limit) => lock.write(seen, self, leaseDurationMs, limit),
    signal,
  );
  const next = wroteLease(state, written, sentAt);
  const until = leadsUntil(next);
  if (written !== undefined && next.held !== undefined && until !== undefined && clock.monotonic() < until)
    keeping.held(next.held.term, until);
  return next;
}

/** So that another one can lead at once. Without it the others wait until the lease has run out. */
async function release(keeping: LeaseKeeping, state: LeaseState): Promise<void> {
  const { lock, self, clock } = keeping;
  if (state.held === undefined) return;
  let seen = state.seen?.view;
  for (let attempt = 1; attempt <= releaseAttempts; attempt += 1) {
    try {
      seen ??= await limited(clock, releaseCallMs, (limit) => lock.read(limit));
      const view = seen;
      if (view.holder !== self) return;
      if ((await limited(clock, releaseCallMs, (limit) => lock.write(view, self, leaseReleaseMs, limit))) !== undefined) return;
    } catch (error) {
      keeping.failed(error);
    }
    // A renewal was under way when it was told to end: what is there now has to be seen first.
    seen = undefined;
  }
}

function limited<Result>(clock: Clock, ms: number, work: (signal: AbortSignal) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
  const tooLong = (): Error => new SvcError('SVC_NOT_LEADER', `The lease could not be read or written within ${Math.round(ms)} ms.`);
  return withDeadline(clock, ms, work, tooLong, signal);
}
