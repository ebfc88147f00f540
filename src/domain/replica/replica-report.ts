import type { EngineReading } from '../engine-metrics.ts';
import type { InterruptionNotice } from './interruptions.ts';
import { isAlive, type EndCause, type ReplicaState } from './replica-state.ts';

/** The last reports about a replica. Not stored: a restart gets them again. `reconcile` and `endpointSet` conclude. */
export interface ReplicaReport {
  readonly probe: ProbeReport;
  /** Whether its program has ended or its machine is gone. A later passed probe resets it. */
  readonly isGone: boolean;
  /** Whether a ready replica's probes pass. Also false while a probe takes longer than answers usually do. */
  readonly answers: boolean;
  readonly machine: MachineReport;
  readonly notice: InterruptionNotice | undefined;
  /** The provider's rebalance recommendation, a sentence for users. It stays until the machine ends. */
  readonly recommendation: string | undefined;
  /** The last metrics of its engine, if its service reads them. */
  readonly engine?: EngineReading;
  /** The first end that its executor or its provider reported. */
  readonly end: ReplicaEnd | undefined;
}

/** `unknown`: none has ended. `slow`: other replicas can take requests. `unanswered`: no answer came in time. */
type ProbeReport = 'unknown' | 'passed' | 'slow' | 'failed' | 'unanswered';

/** Why a replica must end. */
export interface ReplicaEnd {
  readonly cause: EndCause;
  /** A sentence for users. */
  readonly reason: string;
  /** Whether it was killed from outside (SIGKILL, a lost machine) rather than ending by itself. */
  readonly killed?: boolean;
  /** Whether its provider tried to start it and reported why it cannot. */
  readonly neverStarted?: boolean;
}

/** A machine about which its provider cannot report whether it runs. */
interface MachineSilence {
  /** Cause of the end that may follow from the silence. */
  readonly cause: EndCause;
  readonly reason: string;
  /** See `isSilenceWidespread`. */
  readonly isWidespread: boolean;
  /** Whether the provider was asked to terminate the machine. It will do so when the machine reports again. */
  readonly isEnding: boolean;
}

/**
 * The provider's last report about the machine. `unseen`: none since this process began. `back`: it reports again since
 * `since` (monotonic ms), but its replica has not answered yet; the replacement may already be launched.
 */
export type MachineReport =
  | { readonly type: 'unseen' }
  | { readonly type: 'reporting' }
  | ({ readonly type: 'silent' } & MachineSilence)
  | ({ readonly type: 'back'; readonly since: number } & MachineSilence);

/** The state before the first report. */
export const noReport: ReplicaReport = {
  probe: 'unknown',
  isGone: false,
  answers: true,
  machine: { type: 'unseen' },
  notice: undefined,
  recommendation: undefined,
  end: undefined,
};

/** The report after a poll. `silence`: the provider cannot report whether the machine runs. `now`: monotonic ms. */
export function nextMachineReport(before: MachineReport, silence: MachineSilence | undefined, now: number): MachineReport {
  if (silence !== undefined) return { ...silence, type: 'silent' };
  if (before.type === 'silent') return { ...before, type: 'back', isEnding: false, isWidespread: false, since: now };
  return before.type === 'back' ? before : { type: 'reporting' };
}

/** Once its replica answers, a machine that is back counts as never silent. */
export function withoutPastSilence({ machine, answers }: ReplicaReport, state: ReplicaState): MachineReport {
  return machine.type === 'back' && (!isAlive(state) || (state === 'READY' && answers)) ? { type: 'reporting' } : machine;
}

/** Whether the machine is or may be silent: failed probes end no replica before its provider has described it. */
export const isSilentOrUnseen = ({ machine }: ReplicaReport): boolean => machine.type === 'silent' || machine.type === 'unseen';
