import { slowProbeMs } from './probe.ts';
import type { ReplicaState } from './replica-state.ts';

/**
 * From this share of silent nodes on, the network or the control plane is the likelier fault, and no machine is
 * removed. Kubernetes uses the same number (`--unhealthy-zone-threshold`), from three nodes of a zone on. svc applies
 * it to smaller zones too, because a removal would be a guess.
 */
const widespreadPercent = 55;

/** Whether so many nodes are silent at once that silence is no reason to remove their machines. */
export function isSilenceWidespread(silentNodes: number, allNodes: number): boolean {
  // Integer arithmetic: 0.55 * 100 is more than 55.
  return silentNodes > 0 && 100 * silentNodes >= widespreadPercent * allNodes;
}

/** A replica whose machine is silent: its provider cannot report whether it runs. */
export interface SilentReplica {
  readonly id: number;
  readonly state: ReplicaState;
  readonly answers: boolean;
  /** Whether the provider was asked to terminate the machine. It does so when the machine reports again. */
  readonly isEnding: boolean;
  /** See `isSilenceWidespread`. */
  readonly isWidespread: boolean;
  /** How long ago its machine reported again, ms; undefined while it is silent. */
  readonly respondingForMs: number | undefined;
}

/** Time for a machine that reports again to answer, ms. After that its replica ends in favour of the replacement. */
export const secondChanceMs = 10_000;

/** Whether a silent replica needs a replacement. One that answers does not, unless its machine is being terminated. */
export function needsReplacement({ answers, isEnding }: Pick<SilentReplica, 'answers' | 'isEnding'>): boolean {
  return !answers || isEnding;
}

/**
 * Silent replicas with a replacement that should end now, those that do not answer first. Of the `desired` replicas,
 * `readyOthers` are ready without them. None ends while the silence is widespread, or has only just ended.
 */
export function silentToEnd<Replica extends SilentReplica>(
  replaced: readonly Replica[],
  readyOthers: number,
  desired: number,
): readonly Replica[] {
  const missing = Math.max(0, desired - readyOthers);
  return replaced
    .filter(({ isWidespread, respondingForMs = secondChanceMs }) => !isWidespread && respondingForMs >= secondChanceMs)
    .toSorted((a, b) => Number(a.answers) - Number(b.answers) || a.id - b.id)
    .slice(0, Math.max(0, replaced.length - missing));
}

interface ProbePulse {
  /** Whether the last completed probe passed; true before the first one has completed. */
  readonly lastPassed: boolean;
  /** How long the probe under way has been waiting; undefined when there is none. */
  readonly waitingMs: number | undefined;
  readonly lastTookMs: number;
}

/** Whether a ready replica still answers: a probe may take twice the last passed one, and at least `slowProbeMs`. */
export function stillAnswers({ lastPassed, waitingMs, lastTookMs }: ProbePulse): boolean {
  if (!lastPassed) return false;
  return waitingMs === undefined || waitingMs < Math.max(slowProbeMs, 2 * lastTookMs);
}
