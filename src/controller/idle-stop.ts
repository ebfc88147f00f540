/** When the daemon is to stop by itself. */
export interface IdleState {
  /** Since when nothing needs it, ms; null while something does. */
  readonly since: number | null;
}

/** Pure: what the last look at the number of services and clusters means. */
export function nextIdle(state: IdleState, busy: boolean, now: number): IdleState {
  if (busy) return { since: null };
  return { since: state.since ?? now };
}

/** Whoever has just started it is about to ask something of it, ms; also where it is to stop as soon as nothing is left. */
const leastIdleMs = 20_000;

/** ms until it stops; null while it is needed or when it never stops. */
export function idleStopMs(state: IdleState, idleMinutes: number | undefined, now: number): number | null {
  if (state.since === null || idleMinutes === undefined) return null;
  return Math.max(0, state.since + Math.max(leastIdleMs, idleMinutes * 60_000) - now);
}
