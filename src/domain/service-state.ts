import { isAlive, type ReplicaState } from './replica-state.ts';

/** A service's states, as `svc serve status` prints them. */
export const serviceStates = [
  'CONTROLLER_INIT',
  'REPLICA_INIT',
  'READY',
  'NO_REPLICA',
  'SHUTTING_DOWN',
  'FAILED',
  'CONTROLLER_FAILED',
  'FAILED_CLEANUP',
] as const;
export type ServiceState = (typeof serviceStates)[number];

/** What a service's state is derived from. */
export interface ServiceFacts {
  readonly replicas: readonly ReplicaState[];
  /** Replicas that are wanted now. */
  readonly target: number;
  /** Its reconciler has made at least one pass since `up`. */
  readonly initialised: boolean;
  readonly shuttingDown: boolean;
  readonly cleanupFailed: boolean;
  /** Its reconciler or balancer keeps dying and is not restarted for now. */
  readonly processesFailed: boolean;
  /** It never had a ready replica, kept failing, and no more launches are made. */
  readonly gaveUp: boolean;
}

/** Pure: one state for all facts. Ready replicas outweigh failed ones, as users care for whether it answers. */
export function serviceState(facts: ServiceFacts): ServiceState {
  if (facts.cleanupFailed) return 'FAILED_CLEANUP';
  if (facts.shuttingDown) return 'SHUTTING_DOWN';
  if (facts.processesFailed) return 'CONTROLLER_FAILED';
  if (!facts.initialised) return 'CONTROLLER_INIT';
  if (facts.replicas.includes('READY')) return 'READY';
  if (facts.gaveUp) return 'FAILED';
  // Between a failure and the next launch it is still on its way up.
  return facts.target > 0 || facts.replicas.some(isAlive) ? 'REPLICA_INIT' : 'NO_REPLICA';
}
