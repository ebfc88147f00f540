/** States in which a replica serves requests or may come to serve them. These count towards the target. */
export const aliveStates = ['PENDING', 'PROVISIONING', 'STARTING', 'READY', 'NOT_READY', 'SLEEPING'] as const;

/** States as `svc serve status` prints them. docs/reference/states.md has the diagram, generated from `transitions`. */
export const replicaStates = [
  ...aliveStates,
  'SHUTTING_DOWN',
  'PREEMPTED',
  'FAILED',
  'FAILED_INITIAL_DELAY',
  'FAILED_PROBING',
  'FAILED_PROVISION',
  'FAILED_CLEANUP',
  'UNKNOWN',
  'TERMINATED',
] as const;
export type ReplicaState = (typeof replicaStates)[number];

/** Why a replica terminates. Decides its final state once its machine is gone. */
export const endCauses = [
  'scale-down',
  'update',
  'user',
  'service-down',
  'program-failed',
  'initial-delay',
  'probing',
  'provision',
  'preempted',
  'interruption',
  'machine-lost',
] as const;
export type EndCause = (typeof endCauses)[number];

/** Events of a replica. */
export type ReplicaEvent =
  | { readonly type: 'launch-started' }
  /** The machine runs, its files are complete, and the program was started. */
  | { readonly type: 'machine-up' }
  | { readonly type: 'probe-passed' }
  | { readonly type: 'probe-failed' }
  /** The service needs no replica, and this one's engine can release its memory. */
  | { readonly type: 'sleep-requested' }
  | { readonly type: 'wake-requested' }
  /** The replica must end, whatever its state. The removal of its machine begins. */
  | { readonly type: 'stop-requested'; readonly cause: EndCause }
  /** The provider confirmed that nothing of the machine is left. */
  | { readonly type: 'machine-gone'; readonly cause: EndCause }
  | { readonly type: 'cleanup-failed' }
  /** A user drops the record of a replica whose machine could not be terminated. */
  | { readonly type: 'dropped'; readonly cause: EndCause }
  /** The record contradicts itself. It is kept for manual inspection. */
  | { readonly type: 'record-inconsistent' };

/** Final state of a replica by the cause of its end. */
export const finalStates: Readonly<Record<EndCause, ReplicaState>> = {
  'scale-down': 'TERMINATED',
  update: 'TERMINATED',
  user: 'TERMINATED',
  'service-down': 'TERMINATED',
  'program-failed': 'FAILED',
  'initial-delay': 'FAILED_INITIAL_DELAY',
  probing: 'FAILED_PROBING',
  provision: 'FAILED_PROVISION',
  preempted: 'PREEMPTED',
  interruption: 'PREEMPTED',
  'machine-lost': 'FAILED',
};

type Target = ReplicaState | 'by-cause';

/**
 * The whole table. A missing entry: the event is stale for that state and changes nothing. That is normal: controllers
 * restart and providers repeat themselves, so a late "probe-passed" may reach a replica that is shutting down.
 */
export const transitions: Readonly<Record<ReplicaState, Readonly<Partial<Record<ReplicaEvent['type'], Target>>>>> = {
  PENDING: { 'launch-started': 'PROVISIONING', 'stop-requested': 'SHUTTING_DOWN', 'record-inconsistent': 'UNKNOWN' },
  PROVISIONING: { 'machine-up': 'STARTING', 'stop-requested': 'SHUTTING_DOWN', 'record-inconsistent': 'UNKNOWN' },
  STARTING: { 'probe-passed': 'READY', 'stop-requested': 'SHUTTING_DOWN', 'record-inconsistent': 'UNKNOWN' },
  READY: {
    'probe-failed': 'NOT_READY',
    'sleep-requested': 'SLEEPING',
    'stop-requested': 'SHUTTING_DOWN',
    'record-inconsistent': 'UNKNOWN',
  },
  NOT_READY: { 'probe-passed': 'READY', 'stop-requested': 'SHUTTING_DOWN', 'record-inconsistent': 'UNKNOWN' },
  SLEEPING: { 'wake-requested': 'NOT_READY', 'stop-requested': 'SHUTTING_DOWN', 'record-inconsistent': 'UNKNOWN' },
  SHUTTING_DOWN: { 'machine-gone': 'by-cause', 'cleanup-failed': 'FAILED_CLEANUP' },
  FAILED_CLEANUP: { 'machine-gone': 'by-cause', dropped: 'by-cause', 'stop-requested': 'SHUTTING_DOWN' },
  UNKNOWN: { 'stop-requested': 'SHUTTING_DOWN' },
  PREEMPTED: {},
  FAILED: {},
  FAILED_INITIAL_DELAY: {},
  FAILED_PROBING: {},
  FAILED_PROVISION: {},
  TERMINATED: {},
};

/** Pure and total: every state accepts every event. */
export function nextReplicaState(state: ReplicaState, event: ReplicaEvent): ReplicaState {
  const target = transitions[state][event.type];
  if (target === undefined) return state;
  if (target !== 'by-cause') return target;
  return event.type === 'machine-gone' || event.type === 'dropped' ? finalStates[event.cause] : state;
}

/** States that report a failure. */
export const failedStates = [
  'FAILED',
  'FAILED_INITIAL_DELAY',
  'FAILED_PROBING',
  'FAILED_PROVISION',
  'FAILED_CLEANUP',
  'UNKNOWN',
] as const satisfies readonly ReplicaState[];

/** Whether a replica counts towards the target. */
export function isAlive(state: ReplicaState): boolean {
  return alive.has(state);
}

const alive: ReadonlySet<ReplicaState> = new Set(aliveStates);

/** Whether a replica failed. */
export function isFailed(state: ReplicaState): boolean {
  return (failedStates as readonly ReplicaState[]).includes(state);
}

/** Whether nothing of a replica is left and no further event changes it. */
export function isEnded(state: ReplicaState): boolean {
  return ended.has(state);
}

const ended = new Set(replicaStates.filter((state) => Object.keys(transitions[state]).length === 0));
