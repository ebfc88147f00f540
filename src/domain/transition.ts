import type { Change, NewEvent, ReplicaRecord } from './records.ts';
import { isEnded, nextReplicaState, type ReplicaEvent, type ReplicaState } from './replica/replica-state.ts';

/** Explanation of a change for the history: a short stable cause and a sentence without secrets. */
export interface Explanation {
  readonly cause: string;
  readonly message: string;
}

/** A change of a replica's record with its event. Both are written in one transaction. */
export interface ReplicaChange {
  readonly change: Change<ReplicaRecord>;
  readonly event: NewEvent;
}

/**
 * Changes the state of a replica; no other code may do so. Undefined when the event is stale: then nothing changes.
 * `patch`: fields that change together with the state. `now`: ms since the epoch. `serviceKey`: key of its service.
 */
export function transition(
  record: ReplicaRecord,
  event: ReplicaEvent,
  { explanation, now, serviceKey, patch = {} }: TransitionFacts,
): ReplicaChange | undefined {
  const to = nextReplicaState(record.state, event);
  if (to === record.state) return undefined;
  return {
    change: { ...patch, ...timesOf(record, to, now), state: to },
    event: replicaEvent(record, { to, explanation, now, serviceKey }),
  };
}

/** Inputs of a transition besides the record and the event. */
export interface TransitionFacts {
  readonly explanation: Explanation;
  readonly now: number;
  readonly serviceKey: string;
  readonly patch?: Change<ReplicaRecord>;
}

/** An event of a replica. `to`: its new state. */
export function replicaEvent(
  { service, id, state }: Pick<ReplicaRecord, 'service' | 'id' | 'state'>,
  { to, explanation, now, serviceKey }: Pick<TransitionFacts, 'explanation' | 'now' | 'serviceKey'> & { readonly to: ReplicaState },
): NewEvent {
  return { at: now, subject: service, subjectKey: serviceKey, replicaId: id, from: state, to, ...explanation };
}

/** The timestamps that a change to this state sets or clears. */
function timesOf(record: ReplicaRecord, to: ReplicaState, now: number): Change<ReplicaRecord> {
  return {
    ...(to === 'PROVISIONING' ? { launchedAt: now } : {}),
    ...(to === 'READY' ? { firstReadyAt: record.firstReadyAt ?? now, readySince: now, firstProbeFailureAt: null } : {}),
    ...(to === 'NOT_READY' || to === 'SLEEPING' ? { readySince: null } : {}),
    ...(to === 'SHUTTING_DOWN' ? { endRequestedAt: record.endRequestedAt ?? now } : {}),
    ...(isEnded(to) ? { endedAt: now, address: null, machineId: null } : {}),
  };
}
