import { expect, test } from 'vitest';
import type { BalancerReport, RemainingCommand, ReplicasCommand } from '../../domain/balancer-link.ts';
import { Predecessors } from './predecessors.ts';

const remaining = (changes: Partial<RemainingCommand> = {}): RemainingCommand => ({
  type: 'remaining',
  requests: 0,
  errors: 0,
  inFlight: {},
  applied: null,
  ...changes,
});

const set = (revision: number): ReplicasCommand => ({ type: 'replicas', epoch: 'e', revision, replicas: [] });

function aClient() {
  const received: (BalancerReport | ReplicasCommand)[] = [];
  return { received, notify: (report: BalancerReport | ReplicasCommand) => void received.push(report) };
}

test('counts are complete when all awaited predecessors have reported, or after two seconds', () => {
  const some = new Predecessors(1, 0);
  expect([some.isComplete(0), some.isComplete(1_999), some.isComplete(2_000)]).toEqual([false, false, true]);
  some.record(aClient().notify, remaining(), undefined);
  expect(some.isComplete(0)).toBe(true);
  expect(new Predecessors(0, 0).isComplete(0)).toBe(true);
});

test('a new predecessor gets the newest set, and all get each later set', () => {
  const some = new Predecessors(0, 0);
  const [first, second] = [aClient(), aClient()];
  some.record(first.notify, remaining(), undefined);
  some.record(second.notify, remaining(), set(1));
  some.record(second.notify, remaining(), set(1));
  some.send(set(2));
  expect([first.received, second.received]).toEqual([[set(2)], [set(1), set(2)]]);
});

test('a set is in force when each predecessor applied it, left or timed out', () => {
  const some = new Predecessors(0, 0);
  const [first, second] = [aClient(), aClient()];
  some.record(first.notify, remaining(), undefined);
  some.record(second.notify, remaining({ applied: { epoch: 'e', revision: 7 } }), undefined);
  expect(some.haveApplied(set(7), 0, 100)).toBe(false);
  expect(some.haveApplied(set(7), 0, 2_000)).toBe(true);
  some.record(first.notify, remaining({ applied: { epoch: 'other', revision: 9 } }), undefined);
  expect(some.haveApplied(set(7), 0, 100)).toBe(false);
  some.forget(first.notify);
  expect(some.haveApplied(set(7), 0, 100)).toBe(true);
});

test('requests in flight of predecessors are added, and their totals outlast them', () => {
  const some = new Predecessors(0, 0);
  const one = aClient();
  some.record(one.notify, remaining({ requests: 3, errors: 1, inFlight: { 1: 2, 2: 0 } }), undefined);
  some.record(one.notify, remaining({ requests: 4, inFlight: { 1: 1, 3: 5 } }), undefined);
  expect(some.addInFlight({ 1: 10 })).toEqual({ 1: 11, 3: 5 });
  some.forget(one.notify);
  expect([some.addInFlight({ 1: 10 }), some.totals]).toEqual([{ 1: 10 }, { requests: 7, errors: 1 }]);
});
