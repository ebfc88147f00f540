/** Content of a lease: the leader and its term. */
export interface LeaseView {
  /** Unique to one process: a restarted process is another holder. null: the lease was never held. */
  readonly holder: string | null;
  /** Fencing token: increases by one whenever another holder takes the lease. 0 before the first. */
  readonly term: number;
  /** Changes with each renewal. The value has no other meaning. */
  readonly renewal: string;
  /** How long a renewal is valid, as its holder requested. */
  readonly durationMs: number;
}

/** Storage of one lease that all candidates share: a database table or a Kubernetes object. */
export interface LeaseLock {
  read(signal: AbortSignal): Promise<LeaseView>;
  /** Compare-and-set; undefined if another process wrote since `seen`. A change of the holder increases `term`. */
  write(seen: LeaseView, holder: string, durationMs: number, signal: AbortSignal): Promise<LeaseView | undefined>;
}

/**
 * How long candidates wait for a leader that does not renew. Only a crash costs this: a clean stop releases the lease.
 * With it, another controller answers less than ten seconds after a crash.
 */
export const leaseDurationMs = 6_000;
/** Interval of renewals, ms. One renewal may be lost and a second one late before the leader has to stop. */
export const leaseRenewMs = 1_500;
/** Interval in which a candidate reads the lease, ms. */
export const leasePollMs = 250;
/** How long a leader acts after it *sent* a renewal, ms. The margin covers other clock speeds and calls in flight. */
export const leaseActMs = leaseDurationMs * 0.75;
/** Duration in the last renewal, which releases the lease, ms. The next candidate that reads it takes the lease. */
export const leaseReleaseMs = 1;

/** A lease as one process knows it, by its own monotonic clock. Times of two machines are never compared. */
export interface LeaseState {
  /** Name of the process as a holder. */
  readonly self: string;
  /** The last lease read, and when this process first saw its renewal. */
  readonly seen: { readonly view: LeaseView; readonly sinceMs: number } | undefined;
  /** While it leads: its term, and when it sent its last successful renewal. */
  readonly held: { readonly term: number; readonly sentAtMs: number } | undefined;
}

/**
 * `look`: read the lease and decide again at once. `take`, `renew`: write with `seen`, then call `wroteLease`. `wait`:
 * decide again after `forMs`; a candidate reads first. `lost`: the process must not act and has to exit.
 */
type LeaseDecision =
  | { readonly action: 'look' }
  | { readonly action: 'take' | 'renew'; readonly seen: LeaseView }
  | { readonly action: 'wait'; readonly forMs: number }
  | { readonly action: 'lost'; readonly why: string };

/** A holder's name: its host, so that people and the launcher find the leader's pod, and a unique part. */
export function holderName(host: string, unique: string): string {
  return `${host}_${unique}`;
}

/** Host in the name of a holder; in Kubernetes the name of its pod. */
export function hostOfHolder(holder: string): string {
  const end = holder.lastIndexOf('_');
  return end < 0 ? holder : holder.slice(0, end);
}

/** State of a process that has just started to request the lease. */
export function leaseCandidate(self: string): LeaseState {
  return { self, seen: undefined, held: undefined };
}

/** Records a lease that was read. `nowMs` is the time when the response arrived. */
export function sawLease(state: LeaseState, view: LeaseView, nowMs: number): LeaseState {
  const { seen } = state;
  const isSame =
    seen !== undefined && seen.view.renewal === view.renewal && seen.view.term === view.term && seen.view.holder === view.holder;
  return { ...state, seen: { view, sinceMs: isSame ? seen.sinceMs : nowMs } };
}

/**
 * Records the result of a write that was sent at `sentAtMs`. The result is undefined when another process wrote, or an
 * earlier write of this process that seemed to fail. The lease must then be read before the next decision.
 */
export function wroteLease(state: LeaseState, written: LeaseView | undefined, sentAtMs: number): LeaseState {
  if (written === undefined) return { ...state, seen: undefined };
  return { ...state, seen: { view: written, sinceMs: sentAtMs }, held: { term: written.term, sentAtMs } };
}

/** Until when a leader may act, by its own monotonic clock; undefined when it does not lead. */
export function leadsUntil({ held }: LeaseState): number | undefined {
  return held === undefined ? undefined : held.sentAtMs + leaseActMs;
}

/** Decides the next step from the state at `nowMs`. */
export function decideLease(state: LeaseState, nowMs: number): LeaseDecision {
  return state.held === undefined ? decideCandidate(state, nowMs) : decideLeader(state, state.held, nowMs);
}

function decideLeader({ self, seen }: LeaseState, held: NonNullable<LeaseState['held']>, nowMs: number): LeaseDecision {
  if (nowMs >= held.sentAtMs + leaseActMs) return { action: 'lost', why: `it could not be renewed for ${leaseActMs / 1000} s` };
  if (seen === undefined) return { action: 'look' };
  const { view } = seen;
  if (view.holder !== self || view.term !== held.term)
    return { action: 'lost', why: `${view.holder ?? 'no controller'} holds it with term ${view.term}` };
  const dueInMs = held.sentAtMs + leaseRenewMs - nowMs;
  return dueInMs > 0 ? { action: 'wait', forMs: dueInMs } : { action: 'renew', seen: view };
}

function decideCandidate({ self, seen }: LeaseState, nowMs: number): LeaseDecision {
  if (seen === undefined) return { action: 'look' };
  const { view, sinceMs } = seen;
  // This process holds the lease already: the response to its write was lost.
  if (view.holder === self) return { action: 'renew', seen: view };
  const leftMs = sinceMs + holdsMs(view) - nowMs;
  return leftMs > 0 ? { action: 'wait', forMs: Math.min(leftMs, leasePollMs) } : { action: 'take', seen: view };
}

/** How long a renewal is valid, ms. A leader requests less than the usual duration only to release the lease. */
function holdsMs({ durationMs }: LeaseView): number {
  return durationMs <= leaseReleaseMs ? durationMs : Math.max(durationMs, leaseDurationMs);
}
