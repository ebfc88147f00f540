import { expect, test } from 'vitest';
import { aTaskWith } from '../../../test/support/reconcile-world.ts';
import { defaultUpdate } from '../task.ts';
import { movedToDrain, replicasToMove, type RecommendedReplica } from './rebalance.ts';

const one = (id: number, state: RecommendedReplica['state'] = 'READY'): RecommendedReplica => ({ id, state });
const policyOf = (maxReplicas: number) => {
  const policy = aTaskWith({ maxReplicas }).service?.replicaPolicy;
  if (policy === undefined) throw new Error('no service');
  return policy;
};
const moved = (maxReplicas: number, surge: number, desired = 2): readonly number[] =>
  replicasToMove([one(1, 'STARTING'), one(2), one(3, 'NOT_READY'), one(4)], desired, {
    policy: policyOf(maxReplicas),
    update: { ...defaultUpdate, surge },
  }).map(({ id }) => id);

test('as many serving replicas are moved at once as the bounds and the surge allow', () => {
  expect([moved(2, 1), moved(3, 1), moved(3, 0), moved(2, 0)]).toEqual([[2], [2, 3], [2], []]);
  expect(moved(9, 0)).toEqual([2, 3, 4]);
});

test('a moved replica drains when the desired replicas are ready beside it', () => {
  expect(movedToDrain([one(1)], 1, 2)).toEqual([]);
  expect(movedToDrain([one(1)], 2, 2)).toEqual([1]);
  expect(movedToDrain([one(1), one(2)], 1, 2)).toEqual([1]);
  expect([movedToDrain([one(1, 'NOT_READY')], 1, 2), movedToDrain([one(1, 'NOT_READY')], 2, 2)]).toEqual([[], [1]]);
});
