import type { LoadSignals } from './load-signals.ts';

/** Panic begins when the last seconds require this many times the ready replicas. Knative's default is 200 %. */
const panicFactor = 2;

/** Panic ends when nothing required it for this long, in decisions: a minute, as in Knative. */
const panicSteps = 12;

/** Time between two decisions, s. */
export const concurrencyStepSeconds = 5;

/** State of panic between decisions; absent while there is none. */
export interface PanicMemory {
  /** Most replicas that a decision of this panic required. */
  readonly most: number;
  /** Decisions until it ends. */
  readonly left: number;
}

/**
 * Replicas that the requests in flight and queued require, in the manner of Knative's autoscaler: their mean over a
 * minute, or over six seconds while the service is in panic. In panic the number never falls.
 */
export function desiredByConcurrency(
  perReplica: number,
  { ongoing, readyReplicas }: Pick<LoadSignals, 'ongoing' | 'readyReplicas'>,
  before: { readonly target: number; readonly panic?: PanicMemory | undefined },
): { readonly desired: number; readonly panic: PanicMemory | undefined } {
  const [stable, urgent] = [Math.ceil(ongoing.minute / perReplica), Math.ceil(ongoing.moment / perReplica)];
  const begins = urgent >= panicFactor * Math.max(1, readyReplicas);
  const left = begins ? panicSteps : (before.panic?.left ?? 0) - 1;
  if (left <= 0) return { desired: stable, panic: undefined };
  const most = Math.max(urgent, before.panic?.most ?? before.target);
  return { desired: Math.max(most, stable), panic: { most, left } };
}
