import type { EndCause } from '../../domain/replica/replica-state.ts';
import type { MachineStatus } from '../../providers/provider.ts';
import { isoTime } from '../../shared/clock.ts';

/**
 * A provider's report about a machine. `gone`: the machine is gone, for that cause. `leaving`: the provider will
 * reclaim it at about `at` (ms since the epoch; unknown means within minutes). `silent`: the provider does not know;
 * `cause` is the cause of the end that may follow. `doubtful`: the provider may reclaim it, so no other replica should
 * be placed there.
 */
export type MachineLoss =
  | { readonly type: 'gone'; readonly cause: EndCause; readonly reason: string }
  | { readonly type: 'leaving'; readonly at: number | undefined; readonly reason: string }
  | {
      readonly type: 'silent';
      readonly cause: EndCause;
      readonly reason: string;
      readonly isWidespread: boolean;
      readonly isEnding: boolean;
    }
  | { readonly type: 'doubtful'; readonly reason: string };

/**
 * Translates a machine's status into its consequence for the replica; undefined when the machine is well. `machine`
 * names it in sentences. Pure.
 */
export function lossOf(status: MachineStatus | undefined, machine: string): MachineLoss | undefined {
  if (status?.state === 'gone') {
    const { reason, message } = status;
    const words = message === undefined ? ` (${reason}).` : `: ${message.trim()}${/[.!?]$/.test(message.trim()) ? '' : '.'}`;
    return { type: 'gone', cause: reason === 'preempted' ? 'preempted' : 'machine-lost', reason: `${machine} is gone${words}` };
  }
  // Only the owner of a machine stops it.
  if (status?.state === 'stopped') return { type: 'gone', cause: 'machine-lost', reason: `${machine} was stopped.` };
  if ((status?.state === 'running' || status?.state === 'booting') && status.silence !== undefined) {
    const { message, isTaken, isWidespread, isEnding } = status.silence;
    return {
      type: 'silent',
      cause: isTaken ? 'preempted' : 'machine-lost',
      reason: `${machine} is silent: ${message}`,
      isWidespread,
      isEnding,
    };
  }
  if (status?.state !== 'running' || status.notice === undefined) return undefined;
  const { kind, at } = status.notice;
  if (kind === 'rebalance') return { type: 'doubtful', reason: `${machine} may be reclaimed.` };
  const when = at === undefined ? 'within minutes' : `at ${isoTime(at)}`;
  return { type: 'leaving', at, reason: `${machine} is being reclaimed by its provider ${when}.` };
}
