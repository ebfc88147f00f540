/** What a lease says: who leads, and since which change of leaders. */
export interface LeaseView {
  /** Unique to one process: one that starts again is another holder. null: nobody ever held it. */
  readonly holder: string | null;
  /** Counts up by one whenever another holder takes it; 0 before the first. */
  readonly term: number;
  /** Changes whenever the holder renews; means nothing else. */
  readonly renewal: string;
  /** How long a renewal holds, as its holder asked for. */
  readonly durationMs: number;
}

/** A place where all candidates see one lease: a table of a database, or an object of Kubernetes. */
export interface LeaseLock {
  read(signal: AbortSignal): Promise<LeaseView>;
  /** Compare-and-set: takes or renews if nobody renewed since `seen`; undefined when somebody did. Taking over from another holder increases `term`. */
  write(seen: LeaseView, holder: string, durationMs: number, signal: AbortSignal): Promise<LeaseView | undefined>;
}

/**
 * How long candidates wait for a leader that says nothing. A leader that ends by itself gives the lease up sooner, so this is only the time
 * that a crash costs: with it, another one has taken over and answers less than ten seconds later.
 */
export const leaseDurationMs = 6_000;
/** A leader renews so often: one renewal may be lost and a second one late before it has to stop. */
export const leaseRenewMs = 1_500;
/** A candidate looks so often. */
export const leaseLookMs = 250;
/**
 * For how long after it *sent* a renewal a leader acts: a quarter less than others wait, which is for clocks that run at different speeds and for
 * what was under way.
 */
export const leaseActMs = leaseDurationMs * 0.75;
/** The duration of a last renewal that gives the lease up: the next look of any candidate takes it. */
export const leaseReleaseMs = 1;

/** What one process knows of a lease. All times are its own monotonic clock's: those of two machines are never compared. */
export interface LeaseState {
  /** The name under which it asks. */
  readonly self: string;
  /** What was read last, and when its renewal was seen first. */
  readonly seen: { readonly view: LeaseView; readonly sinceMs: number } | undefined;
  /** While it leads: its term, and when its last renewal that succeeded was sent. */
  readonly held: { readonly term: number; readonly sentAtMs: number } | undefined;
}

/**
 * What to do about a lease now. `look`: read it and decide again, at once. `take` and `renew`: write with `seen`, and tell `wroteLease`. `wait`: decide again after so long; a candidate
 * reads before. `lost`: it led and does not any more; it must not act, and has to end.
 */
export type LeaseDecision =
  | { readonly action: 'look' }
  | { readonly action: 'take' | 'renew'; readonly seen: LeaseView }
  | { readonly action: 'wait'; readonly forMs: number }
  | { readonly action: 'lost'; readonly why: string };

/** Name of a holder: where it runs, for people and for whoever has to find the leader's pod, and what no other process has. */
export function holderName(host: string, unique: string): string {
  return `${host}_${unique}`;
}

/** Where a holder runs, by its name; in Kubernetes that is its pod. */
export function hostOfHolder(holder: string): string {
  const end = holder.lastIndexOf('_');
  return end < 0 ? holder : holder.slice(0, end);
}

/** A process that has just begun to ask for the lease. */
export function leaseCandidate(self: string): LeaseState {
  return { self, seen: undefined, held: undefined };
}

/** Takes note of what was read at `nowMs`, the time when the answer was there. */
export function sawLease(state: LeaseState, view: LeaseView, nowMs: number): LeaseState {
  const { seen } = state;
  const isSame =
    seen !== undefined && seen.view.renewal === view.renewal && seen.view.term === view.term && seen.view.holder === view.holder;
  return { ...state, seen: { view, sinceMs: isSame ? seen.sinceMs : nowMs } };
}

/**
 * Takes note of the answer to a write that was sent at `sentAtMs`. Without one (somebody else wrote, or an earlier write of our own that seemed to fail) the
 * lease has to be read before the next decision.
 */
export function wroteLease(state: LeaseState, written: LeaseView | undefined, sentAtMs: number): LeaseState {
  if (written === undefined) return { ...state, seen: undefined };
  return { ...state, seen: { view: written, sinceMs: sentAtMs }, held: { term: written.term, sentAtMs } };
}

/** Until when (its own monotonic clock) a leader may act; undefined when it does not lead. */
export function leadsUntil({ held }: LeaseState): number | undefined {
  return held === undefined ? undefined : held.sentAtMs + leaseActMs;
}

/** Decides from what is known at `nowMs`. */
export function decideLease(state: LeaseState, nowMs: number): LeaseDecision {
  return state.held === undefined ? decideCandidate(state, nowMs) : decideLeader(state, state.held, nowMs);
}

function decideLeader({ self, seen }: LeaseState, held: NonNullable<LeaseState['held']>, nowMs: number): LeaseDecision {
  if (nowMs >= held.sentAtMs + leaseActMs) return { action: 'lost', why: `it could not be renewed for ${leaseActMs / 1000} s` };
  if (seen === undefined) return { action: 'look' };
  const { view } = seen;
  if (view.holder !== self || view.term !== held.term)
    return { action: 'lost', why: `${view.holder ?? 'nobody'} holds it with term ${view.term}` };
  const dueInMs = held.sentAtMs + leaseRenewMs - nowMs;
  return dueInMs > 0 ? { action: 'wait', forMs: dueInMs } : { action: 'renew', seen: view };
}

function decideCandidate({ self, seen }: LeaseState, nowMs: number): LeaseDecision {
  if (seen === undefined) return { action: 'look' };
  const { view, sinceMs } = seen;
  // Ours already: the answer to our write was lost.
  if (view.holder === self) return { action: 'renew', seen: view };
  const leftMs = sinceMs + holdsMs(view) - nowMs;
  return leftMs > 0 ? { action: 'wait', forMs: Math.min(leftMs, leaseLookMs) } : { action: 'take', seen: view };
}

/** How long a renewal holds. Nobody who leads asks for less than the usual time, but to give the lease up: a shorter one was written by somebody else. */
function holdsMs({ durationMs }: LeaseView): number {
  return durationMs <= leaseReleaseMs ? durationMs : Math.max(durationMs, leaseDurationMs);
}
