import {
  decideLease,
  leadsUntil,
  leaseCandidate,
  leaseDurationMs,
  leasePollMs,
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

/** Timeout of a read or write of the lease, ms: several must fit into the lease duration. */
const callMs = 2_000;
/** Delay after a failed call, ms. */
const retryMs = 250;
const releaseAttempts = 3;
const releaseCallMs = 1_000;

/** Dependencies and callbacks of keeping a lease. */
export interface LeaseKeeping {
  readonly lock: LeaseLock;
  readonly self: string;
  readonly clock: Clock;
  /** This process holds the lease until `untilMs`, monotonic ms. Called after acquiring it and after each renewal. */
  held(term: number, untilMs: number): void;
  /** Another process holds the lease and was seen to renew it. */
  otherLeads(holder: string): void;
  failed(error: unknown): void;
}

/** Acquires and renews a lease. Returns why it was lost. When the signal aborts, releases the lease at once. */
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
      else if (decision.action === 'look' || state.held === undefined) state = await poll(keeping, state, signal);
    } catch (error) {
      if (signal.aborted) break;
      keeping.failed(error);
      await clock.sleep(state.held === undefined ? leasePollMs : retryMs, signal);
    }
  }
  await release(keeping, state);
  return undefined;
}

/**
 * The same lease for the successor of a dead holder, without the wait. Processes of the dead holder may still run; they
 * have an older term, so the fence stops them like any others.
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

async function poll(keeping: LeaseKeeping, state: LeaseState, signal: AbortSignal): Promise<LeaseState> {
  const view = await limited(keeping.clock, callMs, (limit) => keeping.lock.read(limit), signal);
  const before = state.seen?.view;
  const isRenewal = before !== undefined && before.holder === view.holder && before.renewal !== view.renewal;
  if (isRenewal && view.holder !== null && view.holder !== keeping.self) keeping.otherLeads(view.holder);
  return sawLease(state, view, keeping.clock.monotonic());
}

async function write(keeping: LeaseKeeping, state: LeaseState, seen: LeaseView, signal: AbortSignal): Promise<LeaseState> {
  const { clock, lock, self } = keeping;
  const sentAt = clock.monotonic();
  // A late renewal is worthless: the loss must be reported in time.
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

/** Lets another candidate lead at once. Without it the others wait until the lease expires. */
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
    // A renewal was in progress when the stop arrived: read the current lease first.
    seen = undefined;
  }
}

function limited<Result>(clock: Clock, ms: number, work: (signal: AbortSignal) => Promise<Result>, signal?: AbortSignal): Promise<Result> {
  const tooLong = (): Error => new SvcError('SVC_NOT_LEADER', `The lease could not be read or written within ${Math.round(ms)} ms.`);
  return withDeadline(clock, ms, work, tooLong, signal);
}
