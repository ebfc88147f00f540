import { expect, test } from 'vitest';
import { aReplica, aServiceSpec, aTask, someResources } from '../../../test/support/builders.ts';
import type { ResourceAlternatives, Task } from '../../domain/task.ts';
import type { PlaceRecord } from '../../store/records.ts';
import { fleetOf, missingTarget, withCapacity } from './replica-capacity.ts';

const { replicaPolicy } = aServiceSpec();
const spec = aServiceSpec({ replicaPolicy: { ...replicaPolicy, targetQpsPerReplica: { L4: 2, 'A100-80GB': 10 } } });

const taskFor = (order: ResourceAlternatives['order'], names: readonly string[]): Task =>
  aTask({ service: spec, resources: { order, choices: names.map((name) => someResources({ accelerator: { name, count: 1 } })) } });

const placeWith = (accelerator?: string): PlaceRecord => ({
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

test('a fleet is what the living replicas take, those first that would be kept', () => {
  const replicas = [
    aReplica({ id: 1, state: 'READY', place: placeWith('L4') }),
    aReplica({ id: 2, state: 'READY', place: placeWith('A100-80GB') }),
    aReplica({ id: 3, state: 'FAILED', place: placeWith('A100-80GB') }),
    aReplica({ id: 4, state: 'PENDING' }),
  ];
  expect(fleetOf(taskFor('ordered', ['L4', 'A100-80GB']), replicas)).toEqual({ living: [10, 2, 2], toCome: 2 });
});

test('one to come is the preferred one, or the strongest where there is no preference', () => {
  expect(fleetOf(taskFor('ordered', ['L4', 'A100-80GB']), []).toCome).toBe(2);
  expect(fleetOf(taskFor('any', ['L4', 'A100-80GB']), []).toCome).toBe(10);
  expect(fleetOf(taskFor('any', ['T4']), []).toCome).toBe(2);
});

test('what no entry is for counts as the smallest, and is told', () => {
  expect(withCapacity(taskFor('any', ['L4']), [aReplica({ place: placeWith('T4') })]).map(({ qps }) => qps)).toEqual([2]);
  expect(missingTarget(spec, placeWith('T4'))).toBe(
    'target_qps_per_replica has no entry for T4:1; it counts as the smallest one, 2 requests/s.',
  );
  expect(missingTarget(spec, placeWith('l4'))).toBeUndefined();
  expect(missingTarget(aServiceSpec(), placeWith('T4'))).toBeUndefined();
});

test('where one target is for all, replicas are all alike', () => {
  const task = aTask();
  expect(withCapacity(task, [aReplica()])).toEqual([aReplica()]);
  expect(fleetOf(task, [aReplica()])).toEqual({ living: [], toCome: 1 });
});
