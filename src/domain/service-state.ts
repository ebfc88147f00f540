import { isAlive, type ReplicaState } from './replica/replica-state.ts';

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

/** Facts from which a service's state is derived. */
export interface ServiceFacts {
  readonly replicas: readonly ReplicaState[];
  readonly target: number;
  /** Whether its reconciler has made at least one pass since `up`. */
  readonly initialised: boolean;
  readonly shuttingDown: boolean;
  readonly cleanupFailed: boolean;
  /** Whether its reconciler or balancer keeps dying and is not restarted for now. */
  readonly processesFailed: boolean;
  /** Whether it never had a ready replica and kept failing, so that nothing is launched. */
  readonly gaveUp: boolean;
}

/** One state for all facts. Ready replicas outweigh failed ones: users need to know whether the service answers. */
export function serviceState(facts: ServiceFacts): ServiceState {
  if (facts.cleanupFailed) return 'FAILED_CLEANUP';
  if (facts.shuttingDown) return 'SHUTTING_DOWN';
  if (facts.processesFailed) return 'CONTROLLER_FAILED';
  if (!facts.initialised) return 'CONTROLLER_INIT';
  if (facts.replicas.includes('READY')) return 'READY';
  if (facts.gaveUp) return 'FAILED';
  // Between a failure and the next launch the service is still starting.
  return facts.target > 0 || facts.replicas.some((state) => isAlive(state) && state !== 'SLEEPING') ? 'REPLICA_INIT' : 'NO_REPLICA';
}
