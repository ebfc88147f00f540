import { expect, test } from 'vitest';
import type { BalancerReport, RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import { Predecessors } from './predecessors.ts';

const left = (changes: Partial<RemainingCommand> = {}): RemainingCommand => ({
  type: 'remaining',
  requests: 0,
  errors: 0,
  inFlight: {},
  applied: null,
  ...changes,
});

const set = (revision: number): ReplicasCommand => ({ type: 'replicas', epoch: 'e', revision, replicas: [] });

function aClient() {
  const heard: (BalancerReport | ReplicasCommand)[] = [];
  return { heard, tell: (report: BalancerReport | ReplicasCommand) => void heard.push(report) };
}

test('figures are whole when all that were awaited have been heard of, or after two seconds', () => {
  const some = new Predecessors(1, 0);
  expect([some.isComplete(0), some.isComplete(1_999), some.isComplete(2_000)]).toEqual([false, false, true]);
  some.note(aClient().tell, left(), undefined);
  expect(some.isComplete(0)).toBe(true);
  expect(new Predecessors(0, 0).isComplete(0)).toBe(true);
});

test('a newcomer is told the newest set, and all are told each further one', () => {
  const some = new Predecessors(0, 0);
  const [first, second] = [aClient(), aClient()];
  some.note(first.tell, left(), undefined);
  some.note(second.tell, left(), set(1));
  some.note(second.tell, left(), set(1));
  some.send(set(2));
  expect([first.heard, second.heard]).toEqual([[set(2)], [set(1), set(2)]]);
});

test('a set counts as in force when each has it, has gone, or took too long', () => {
  const some = new Predecessors(0, 0);
  const [first, second] = [aClient(), aClient()];
  some.note(first.tell, left(), undefined);
  some.note(second.tell, left({ applied: { epoch: 'e', revision: 7 } }), undefined);
  expect(some.haveApplied(set(7), 0, 100)).toBe(false);
  expect(some.haveApplied(set(7), 0, 2_000)).toBe(true);
  some.note(first.tell, left({ applied: { epoch: 'other', revision: 9 } }), undefined);
  expect(some.haveApplied(set(7), 0, 100)).toBe(false);
  some.forget(first.tell);
  expect(some.haveApplied(set(7), 0, 100)).toBe(true);
});

test('what they have under way is added to ours, and what they were asked stays when they are gone', () => {
  const some = new Predecessors(0, 0);
  const one = aClient();
  some.note(one.tell, left({ requests: 3, errors: 1, inFlight: { 1: 2, 2: 0 } }), undefined);
  some.note(one.tell, left({ requests: 4, inFlight: { 1: 1, 3: 5 } }), undefined);
  expect(some.addInFlight({ 1: 10 })).toEqual({ 1: 11, 3: 5 });
  some.forget(one.tell);
  expect([some.addInFlight({ 1: 10 }), some.totals]).toEqual([{ 1: 10 }, { requests: 7, errors: 1 }]);
});
