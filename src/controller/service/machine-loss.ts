import type { EndCause } from '../../domain/replica-state.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { isoTime } from '../../shared/clock.ts';

/**
 * What a place says of a machine. `gone`: it is, for that cause. `leaving`: it will be taken back at about `at` (ms since the epoch; unknown is within
 * minutes). `doubtful`: it may be, so no other replica should go there.
 */
export type MachineLoss =
  | { readonly type: 'gone'; readonly cause: EndCause; readonly reason: string }
  | { readonly type: 'leaving'; readonly at: number | undefined; readonly reason: string }
  | { readonly type: 'doubtful'; readonly reason: string };

/** What the status of a machine, which is called `machine` in sentences, means for its replica; undefined when all is well. Pure. */
export function lossOf(status: MachineStatus | undefined, machine: string): MachineLoss | undefined {
  if (status?.state === 'gone') {
    const { reason, message } = status;
    const words = message === undefined ? ` (${reason}).` : `: ${message.trim()}${/[.!?]$/.test(message.trim()) ? '' : '.'}`;
    return { type: 'gone', cause: reason === 'preempted' ? 'preempted' : 'machine-lost', reason: `${machine} is gone${words}` };
  }
  // Nobody but its owner stops a machine.
  if (status?.state === 'stopped') return { type: 'gone', cause: 'machine-lost', reason: `${machine} was stopped.` };
  if (status?.state !== 'running' || status.notice === undefined) return undefined;
  const { kind, at } = status.notice;
  if (kind === 'rebalance') return { type: 'doubtful', reason: `${machine} may be taken back.` };
  const when = at === undefined ? 'within minutes' : `at ${isoTime(at)}`;
  return { type: 'leaving', at, reason: `${machine} is taken back by its place ${when}.` };
}
