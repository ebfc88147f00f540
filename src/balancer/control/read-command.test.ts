import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCommand } from './read-command.ts';

const replica = { id: 1, address: { kind: 'tcp', host: '127.0.0.1', port: 80 }, place: 'local', weight: 1, state: 'serving' };
const command = { type: 'replicas', epoch: 'e', revision: 3, replicas: [replica] };

test('a replicas command survives a write and a read', () => {
  expect(readCommand(JSON.stringify(command))).toEqual(command);
  const forward = { ...replica, address: { kind: 'forward', path: '/f.sock', port: 80 } };
  const unix = { ...replica, address: { kind: 'unix', path: '/a.sock', port: 80 }, state: 'draining' };
  expect(readCommand(JSON.stringify({ ...command, replicas: [unix, forward] }))).toEqual({ ...command, replicas: [unix, forward] });
});

const remaining = { type: 'remaining', requests: 3, errors: 0, inFlight: { 4: 1 }, applied: { epoch: 'e', revision: 2 } };

test('a remaining command survives a write and a read', () => {
  expect(readCommand(JSON.stringify(remaining))).toEqual(remaining);
  expect(readCommand(JSON.stringify({ ...remaining, applied: null }))).toEqual({ ...remaining, applied: null });
});

test('version, share and outcomes survive a write and a read', () => {
  const shared = { ...command, replicas: [{ ...replica, version: 3, share: 0 }] };
  expect(readCommand(JSON.stringify(shared))).toEqual(shared);
  const counts = { responses: 3, errors: 1, firstByteCounts: [0, 2] };
  const outcomes = { 4: counts, 5: { ...counts, waitCounts: [1, 0] } };
  expect(readCommand(JSON.stringify({ ...remaining, outcomes }))).toEqual({ ...remaining, outcomes });
});

test('a hand-over command needs only its type', () => {
  expect(readCommand('{"type":"hand-over","more":1}')).toEqual({ type: 'hand-over' });
});

test.each([
  ['no JSON', 'x'],
  ['no object', '[]'],
  ['another type', JSON.stringify({ ...command, type: 'other' })],
  ['no epoch', JSON.stringify({ ...command, epoch: undefined })],
  ['no list', JSON.stringify({ ...command, replicas: {} })],
  ['a replica without a port', JSON.stringify({ ...command, replicas: [{ ...replica, address: { kind: 'tcp', host: 'a' } }] })],
  ['a port out of range', JSON.stringify({ ...command, replicas: [{ ...replica, address: { kind: 'tcp', host: 'a', port: 70_000 } }] })],
  ['a weight of zero', JSON.stringify({ ...command, replicas: [{ ...replica, weight: 0 }] })],
  ['a version of 0', JSON.stringify({ ...command, replicas: [{ ...replica, version: 0 }] })],
  ['a broken version', JSON.stringify({ ...command, replicas: [{ ...replica, version: 1.5 }] })],
  ['a share above 1', JSON.stringify({ ...command, replicas: [{ ...replica, share: 1.01 }] })],
  ['a share that is text', JSON.stringify({ ...command, replicas: [{ ...replica, share: '1' }] })],
  ['outcomes without counts', JSON.stringify({ ...remaining, outcomes: { 4: { responses: 1, errors: 0 } } })],
  ['outcomes that are negative', JSON.stringify({ ...remaining, outcomes: { 4: { responses: -1, errors: 0, firstByteCounts: [] } } })],
  [
    'waits that are text',
    JSON.stringify({ ...remaining, outcomes: { 4: { responses: 1, errors: 0, firstByteCounts: [], waitCounts: ['1'] } } }),
  ],
  ['an unknown state', JSON.stringify({ ...command, replicas: [{ ...replica, state: 'up' }] })],
  ['counts that are none', JSON.stringify({ ...remaining, inFlight: { 4: '1' } })],
  ['a set without a revision', JSON.stringify({ ...remaining, applied: { epoch: 'e' } })],
  ['an id that is no number', JSON.stringify({ ...command, replicas: [{ ...replica, id: '1' }] })],
])('a line is no command: %s', (_, line) => {
  expect(readCommand(line)).toBeUndefined();
});

test('readCommand never throws', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
      readCommand(line);
    }),
  );
});

test('a known loss reason is read, and an unknown one is dropped', () => {
  const lost = { ...replica, state: 'draining', lost: 'hung' };
  expect(readCommand(JSON.stringify({ ...command, replicas: [lost] }))).toEqual({ ...command, replicas: [lost] });
  const { lost: _, ...draining } = lost;
  expect(readCommand(JSON.stringify({ ...command, replicas: [{ ...lost, lost: 'x' }] }))).toEqual({ ...command, replicas: [draining] });
});
