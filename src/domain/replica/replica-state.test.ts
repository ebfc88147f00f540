import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  endCauses,
  finalStates,
  isAlive,
  isEnded,
  isFailed,
  nextReplicaState,
  replicaStates,
  type ReplicaEvent,
  type ReplicaState,
} from './replica-state.ts';

const cause = fc.constantFrom(...endCauses);
const event: fc.Arbitrary<ReplicaEvent> = fc.oneof(
  fc.constantFrom<ReplicaEvent>(
    { type: 'launch-started' },
    { type: 'machine-up' },
    { type: 'probe-passed' },
    { type: 'probe-failed' },
    { type: 'cleanup-failed' },
    { type: 'record-inconsistent' },
  ),
  cause.map((why): ReplicaEvent => ({ type: 'stop-requested', cause: why })),
  cause.map((why): ReplicaEvent => ({ type: 'machine-gone', cause: why })),
);
const events = fc.array(event, { maxLength: 30 });

test('events lead a replica from PENDING through READY to TERMINATED', () => {
  const life: ReplicaEvent[] = [
    { type: 'launch-started' },
    { type: 'machine-up' },
    { type: 'probe-passed' },
    { type: 'probe-failed' },
    { type: 'probe-passed' },
    { type: 'stop-requested', cause: 'scale-down' },
    { type: 'machine-gone', cause: 'scale-down' },
  ];
  const states: ReplicaState[] = ['PENDING'];
  for (const one of life) states.push(nextReplicaState(states.at(-1) ?? 'UNKNOWN', one));
  expect(states).toEqual(['PENDING', 'PROVISIONING', 'STARTING', 'READY', 'NOT_READY', 'READY', 'SHUTTING_DOWN', 'TERMINATED']);
});

test('no event changes an ended replica', () => {
  const property = fc.property(fc.constantFrom(...replicaStates.filter(isEnded)), events, (state, list) => {
    expect(list.reduce(nextReplicaState, state)).toBe(state);
  });
  fc.assert(property);
});

test('no replica ends before its machine is confirmed gone', () => {
  const withoutGone = events.map((list) => list.filter((one) => one.type !== 'machine-gone'));
  const property = fc.property(withoutGone, (list) => {
    expect(isEnded(list.reduce(nextReplicaState, 'PENDING'))).toBe(false);
  });
  fc.assert(property);
});

test('from any state, a confirmed stop leads to the final state of its cause', () => {
  const property = fc.property(events, cause, (list, why) => {
    const before = list.reduce(nextReplicaState, 'PENDING');
    const end: readonly ReplicaEvent[] = [
      { type: 'stop-requested', cause: why },
      { type: 'machine-gone', cause: why },
    ];
    const after = end.reduce(nextReplicaState, before);
    expect(isEnded(before) ? before : finalStates[why]).toBe(after);
  });
  fc.assert(property);
});

test('a replica that is shutting down never serves again', () => {
  const property = fc.property(events, (list) => {
    expect(isAlive(list.reduce(nextReplicaState, 'SHUTTING_DOWN'))).toBe(false);
  });
  fc.assert(property);
});

test('every state is alive, failed, ended or terminating', () => {
  for (const state of replicaStates) {
    expect([isAlive(state), isFailed(state), isEnded(state), state === 'SHUTTING_DOWN'].some(Boolean)).toBe(true);
    expect(isAlive(state) && isFailed(state)).toBe(false);
  }
});
