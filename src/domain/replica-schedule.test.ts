import { expect, test } from 'vitest';
import { aServiceSpec } from '../../test/support/builders.ts';
import { policyAt, widestBounds } from './replica-schedule.ts';
import type { ReplicaPolicy } from './task.ts';

const policy: ReplicaPolicy = {
  ...aServiceSpec().replicaPolicy,
  minReplicas: 1,
  maxReplicas: 3,
  schedule: [
    { cron: '0 8 * * mon-fri', timezone: 'Europe/Berlin', minReplicas: 4, maxReplicas: 8 },
    { cron: '0 20 * * *', timezone: 'Europe/Berlin', minReplicas: 0, maxReplicas: 2 },
  ],
};
const boundsAt = (time: string): readonly number[] => {
  const { minReplicas, maxReplicas } = policyAt(policy, Date.parse(time));
  return [minReplicas, maxReplicas];
};

test('an entry holds from its moment until the next moment of any entry', () => {
  expect(boundsAt('2030-01-16T06:59:59Z')).toEqual([0, 2]);
  expect(boundsAt('2030-01-16T07:00:00Z')).toEqual([4, 8]);
  expect(boundsAt('2030-01-16T18:59:59Z')).toEqual([4, 8]);
  expect(boundsAt('2030-01-16T19:00:00Z')).toEqual([0, 2]);
  // A Sunday has no morning entry.
  expect(boundsAt('2030-01-20T12:00:00Z')).toEqual([0, 2]);
});

test('without a schedule the policy stays as it is', () => {
  const { schedule: _, ...plain } = policy;
  expect(policyAt(plain, 0)).toBe(plain);
});

test('of two entries with the same moment, the later one in the file holds', () => {
  const same = { cron: '0 8 * * *', timezone: 'UTC' };
  const schedule = [
    { ...same, minReplicas: 1, maxReplicas: 1 },
    { ...same, minReplicas: 2, maxReplicas: 2 },
  ];
  expect(policyAt({ ...policy, schedule }, Date.parse('2030-01-16T09:00:00Z')).minReplicas).toBe(2);
});

test('the widest bounds are those of the policy and of all entries', () => {
  expect(widestBounds(policy)).toEqual({ minReplicas: 0, maxReplicas: 8 });
});
