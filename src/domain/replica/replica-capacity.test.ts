import { expect, test } from 'vitest';
import { aReplica, aServiceSpec, aTask, someResources } from '../../../test/support/builders.ts';
import type { ResourceAlternatives, Task } from '../task.ts';
import type { OfferRecord } from '../records.ts';
import { fleetOf, missingTarget, withCapacity } from './replica-capacity.ts';

const { replicaPolicy } = aServiceSpec();
const spec = aServiceSpec({ replicaPolicy: { ...replicaPolicy, targetQpsPerReplica: { L4: 2, 'A100-80GB': 10 } } });

const taskFor = (order: ResourceAlternatives['order'], names: readonly string[]): Task =>
  aTask({ service: spec, resources: { order, choices: names.map((name) => someResources({ accelerator: { name, count: 1 } })) } });

const offerWith = (accelerator?: string): OfferRecord => ({
  provider: 'aws',
  region: 'r',
  zone: null,
  instanceType: 'i',
  resources: '1x',
  gpus: accelerator === undefined ? 0 : 1,
  ...(accelerator === undefined ? {} : { accelerator }),
  spot: false,
  hourlyUsd: 1,
});

test('a fleet has the capacities of the living replicas in keep order', () => {
  const replicas = [
    aReplica({ id: 1, state: 'READY', offer: offerWith('L4') }),
    aReplica({ id: 2, state: 'READY', offer: offerWith('A100-80GB') }),
    aReplica({ id: 3, state: 'FAILED', offer: offerWith('A100-80GB') }),
    aReplica({ id: 4, state: 'PENDING' }),
  ];
  expect(fleetOf(taskFor('ordered', ['L4', 'A100-80GB']), replicas)).toEqual({ living: [10, 2, 2], toCome: 2 });
});

test('a fleet counts first the replicas that a scale-down keeps: the cheapest for their capacity', () => {
  const dear = { ...offerWith('A100-80GB'), hourlyUsd: 20 };
  const replicas = [aReplica({ id: 1, state: 'READY', offer: dear }), aReplica({ id: 2, state: 'READY', offer: offerWith('L4') })];
  expect(fleetOf(taskFor('ordered', ['L4', 'A100-80GB']), replicas).living).toEqual([2, 10]);
});

test("a new replica has the preferred accelerator's capacity, or the largest without a preference", () => {
  expect(fleetOf(taskFor('ordered', ['L4', 'A100-80GB']), []).toCome).toBe(2);
  expect(fleetOf(taskFor('any', ['L4', 'A100-80GB']), []).toCome).toBe(10);
  expect(fleetOf(taskFor('any', ['T4']), []).toCome).toBe(2);
});

test('an accelerator without an entry counts as the smallest target, with a warning', () => {
  expect(withCapacity(taskFor('any', ['L4']), [aReplica({ offer: offerWith('T4') })]).map(({ qps }) => qps)).toEqual([2]);
  expect(missingTarget(spec, offerWith('T4'))).toBe(
    'target_qps_per_replica has no entry for T4:1; it counts as the smallest one, 2 requests/s.',
  );
  expect(missingTarget(spec, offerWith('l4'))).toBeUndefined();
  expect(missingTarget(aServiceSpec(), offerWith('T4'))).toBeUndefined();
});

test('with one target for all, replicas have equal capacity', () => {
  const task = aTask();
  expect(withCapacity(task, [aReplica()])).toEqual([{ ...aReplica(), hourlyUsd: 0 }]);
  expect(fleetOf(task, [aReplica()])).toEqual({ living: [], toCome: 1 });
});
