import type { ReplicaState } from './replica-state.ts';

/** A replica whose machine its place is going to take back. Times are ms since the epoch. */
export interface LeavingReplica {
  readonly id: number;
  readonly state: ReplicaState;
  readonly noticedAt: number;
  /** When it is taken; undefined when the place did not say. */
  readonly takenAt: number | undefined;
}

/** A place that does not say when is believed to mean so soon, ms: the shortest notice that clouds give is two minutes. */
const unsaidMs = 120_000;

/** What is left over for removing the machine itself, ms. */
const marginMs = 5_000;

/** When a leaving replica has to begin to end its requests, which may take `graceMs`: not before half of the time is over, as most take no time. */
export function leavesAt({ noticedAt, takenAt = noticedAt + unsaidMs }: LeavingReplica, graceMs: number): number {
  const left = Math.max(0, takenAt - noticedAt);
  return takenAt - Math.min(graceMs + marginMs, left / 2);
}

/**
 * Which of the leaving replicas are to go now: what does not serve at once; what does as soon as so many as are wanted are ready without it, or when its
 * time has come. `readyStaying` is how many of the others are ready.
 */
export function leaversNow(
  leaving: readonly LeavingReplica[],
  readyStaying: number,
  wanted: number,
  graceMs: number,
  now: number,
): readonly number[] {
  const serving = leaving
    .filter(({ state }) => state === 'READY')
    .toSorted((a, b) => leavesAt(a, graceMs) - leavesAt(b, graceMs) || a.id - b.id);
  const spare = Math.max(0, readyStaying + serving.length - wanted);
  return [
    ...leaving.filter(({ state }) => state !== 'READY'),
    ...serving.filter((replica, index) => index < spare || now >= leavesAt(replica, graceMs)),
  ].map(({ id }) => id);
}
