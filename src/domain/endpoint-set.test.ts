import { expect, test } from 'vitest';
import { aReplica, aServiceSpec } from '../../test/support/builders.ts';
import { endpointSet, servingCapacity, type EndpointCandidate } from './endpoint-set.ts';
import type { ReplicaRecord } from './records.ts';
import { noReport, type ReplicaReport } from './replica/replica-report.ts';

const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;
const spec = aServiceSpec();

function candidate(record: Partial<ReplicaRecord>, report: Partial<ReplicaReport> = {}, its = spec): EndpointCandidate {
  const ready = { id: 1, state: 'READY', address, firstReadyAt: 1_000 } as const;
  return { record: aReplica({ ...ready, ...record }), report: { ...noReport, ...report }, spec: its };
}
const standing = (...args: Parameters<typeof candidate>): readonly unknown[] =>
  endpointSet([candidate(...args)]).map(({ state, lost }) => lost ?? state);

test.for<readonly [string, Partial<ReplicaRecord>, Partial<ReplicaReport>, readonly string[]]>([
  ['a ready replica serves after a restart', {}, {}, ['serving']],
  [
    'a starting replica serves once its probe passed, before its record says so',
    { state: 'STARTING', firstReadyAt: null },
    { probe: 'passed' },
    ['serving'],
  ],
  ['a starting replica that never passed a probe is not listed', { state: 'STARTING', firstReadyAt: null }, {}, []],
  ['a replica that failed its probe is removed', {}, { probe: 'failed' }, []],
  ['a replica whose probe is slow drains', {}, { probe: 'slow' }, ['draining']],
  ['a hung replica is lost', {}, { probe: 'unanswered' }, ['hung']],
  ['a replica that is gone is lost, regardless of its probe', {}, { probe: 'unanswered', isGone: true }, ['gone']],
  ['a replica that shuts down drains', { state: 'SHUTTING_DOWN', endCause: 'scale-down' }, { probe: 'passed' }, ['draining']],
  ['a hung replica that shuts down stays lost', { state: 'SHUTTING_DOWN', endCause: 'probing' }, { probe: 'unanswered' }, ['hung']],
  ['a dead replica that shuts down is gone', { state: 'SHUTTING_DOWN', endCause: 'program-failed' }, {}, ['gone']],
  ['a replica that was never ready has no requests to drain', { state: 'SHUTTING_DOWN', endCause: 'user', firstReadyAt: null }, {}, []],
  ['a replica that is not ready after a restart is not listed', { state: 'NOT_READY' }, {}, []],
  ['an ended replica is not listed', { state: 'TERMINATED' }, { probe: 'passed' }, []],
  ['a replica without an address is not listed', { address: null }, {}, []],
])('%s', ([, record, report, expected]) => {
  expect(standing(record, report)).toEqual(expected);
});

const offer = {
  provider: 'aws',
  region: 'us-east-1',
  zone: null,
  instanceType: 'g6.xlarge',
  resources: '1x',
  gpus: 1,
  accelerator: 'L4',
  spot: false,
  hourlyUsd: 0.8,
};

test('each endpoint has its location and weight', () => {
  const { replicaPolicy } = spec;
  const aware = aServiceSpec({ replicaPolicy: { ...replicaPolicy, targetQpsPerReplica: { 'A100-80GB': 10, l4: 2.5 } } });
  const [endpoint] = endpointSet([candidate({ id: 7, offer })]);
  expect(endpoint).toEqual({ id: 7, version: 1, address, place: 'aws/us-east-1', weight: 1, state: 'serving' });
  expect(endpointSet([candidate({ offer }, {}, aware)])).toMatchObject([{ weight: 2.5 }]);
  const zoned = { ...offer, zone: 'us-east-1a', accelerator: 'A100-80GB' };
  expect(endpointSet([candidate({ offer: zoned }, {}, aware)])).toMatchObject([{ place: 'aws/us-east-1/us-east-1a', weight: 10 }]);
});

test('the new version gets its share, and the version that worked before gets the rest', () => {
  const versions = [1, 1, 1, 2, 3];
  const candidates = versions.map((version, index) => candidate({ id: index + 1, version }));
  const split = { version: 3, share: 0.2, rest: 1 };
  expect(endpointSet(candidates, split).map(({ share }) => share?.toFixed(2))).toEqual(['0.80', '0.80', '0.80', '0.00', '0.20']);
  expect(endpointSet(candidates.slice(3), split).map(({ share }) => share?.toFixed(2))).toEqual(['0.80', '0.20']);
  expect(endpointSet(candidates.slice(4), split).map(({ share }) => share)).toEqual([0.2]);
  expect(endpointSet(candidates).map(({ share }) => share)).toEqual(versions.map(() => undefined));
});

test('capacity counts replicas with slow probes, but not lost or terminating ones', () => {
  const all = [
    candidate({ id: 1 }),
    candidate({ id: 2 }),
    candidate({ id: 3 }, { probe: 'slow' }),
    candidate({ id: 4 }, { isGone: true }),
    candidate({ id: 5, state: 'SHUTTING_DOWN', endCause: 'user' }),
  ];
  expect(servingCapacity(1, all)).toEqual({ serving: 2, all: 3 });
});
