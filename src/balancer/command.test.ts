import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCommand } from './command.ts';

const replica = { id: 1, address: { kind: 'tcp', host: '127.0.0.1', port: 80 }, place: 'local', weight: 1, state: 'serving' };
const command = { type: 'replicas', epoch: 'e', revision: 3, replicas: [replica] };

test('a replicas command is read as it was written', () => {
  expect(readCommand(JSON.stringify(command))).toEqual(command);
  const unix = { ...replica, address: { kind: 'unix', path: '/a.sock', port: 80 }, state: 'draining' };
  expect(readCommand(JSON.stringify({ ...command, replicas: [unix] }))?.replicas).toEqual([unix]);
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
  ['an unknown state', JSON.stringify({ ...command, replicas: [{ ...replica, state: 'up' }] })],
  ['an id that is no number', JSON.stringify({ ...command, replicas: [{ ...replica, id: '1' }] })],
])('a line is no command: %s', (_, line) => {
  expect(readCommand(line)).toBeUndefined();
});

test('no line makes it throw', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (line) => {
      readCommand(line);
    }),
  );
});
