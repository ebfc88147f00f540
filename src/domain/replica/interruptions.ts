import type { ReplicaState } from './replica-state.ts';

/** A provider's notice that it will reclaim a machine. Times are ms since the epoch. */
export interface InterruptionNotice {
  readonly noticedAt: number;
  /** When the machine is reclaimed; undefined when the provider did not say. */
  readonly reclaimedAt: number | undefined;
  /** A sentence for users. */
  readonly reason: string;
}

/** A replica whose machine its provider will reclaim. */
export interface InterruptedReplica {
  readonly id: number;
  readonly state: ReplicaState;
  readonly notice: Pick<InterruptionNotice, 'noticedAt' | 'reclaimedAt'>;
}

/** Assumed length of a notice without a time, ms. Two minutes is the shortest notice that clouds give. */
const unsaidMs = 120_000;

/** Time reserved for terminating the machine, ms. */
const marginMs = 5_000;

/** When a replica must begin to drain, for up to `graceMs`. Not in the first half of the notice: most drain at once. */
export function drainsAt({ notice: { noticedAt, reclaimedAt = noticedAt + unsaidMs } }: InterruptedReplica, graceMs: number): number {
  const left = Math.max(0, reclaimedAt - noticedAt);
  return reclaimedAt - Math.min(graceMs + marginMs, left / 2);
}

/**
 * The interrupted replicas that drain now: those that are not ready, and ready ones when the `desired` replicas are
 * ready without them or their drain time has come. `readyOthers`: ready replicas without a notice.
 */
export function interruptedToDrain(
  interrupted: readonly InterruptedReplica[],
  {
    readyOthers,
    desired,
    graceMs,
    now,
  }: { readonly readyOthers: number; readonly desired: number; readonly graceMs: number; readonly now: number },
): readonly number[] {
  const ready = interrupted
    .filter(({ state }) => state === 'READY')
    .toSorted((a, b) => drainsAt(a, graceMs) - drainsAt(b, graceMs) || a.id - b.id);
  const spare = Math.max(0, readyOthers + ready.length - desired);
  return [
    ...interrupted.filter(({ state }) => state !== 'READY'),
    ...ready.filter((replica, index) => index < spare || now >= drainsAt(replica, graceMs)),
  ].map(({ id }) => id);
}
