import { expect, test } from 'vitest';
import { parseText } from '../../test/support/task-text.ts';
import { alternativesFor, marketRange, spotPlacerOf, wantedMarkets, type MarketCounts } from '../domain/spot/markets.ts';
import type { Task } from '../domain/task.ts';
import { unsupportedFeatures } from './unsupported.ts';

/**
 * The shapes of SkyPilot's examples with spot policies. Each must be read without an error, and decides as SkyServe:
 * https://docs.skypilot.co/en/latest/serving/spot-policy.html
 */
function read(service: string, resources: string): Task {
  const task = parseText(`
service:
  readiness_probe: /health
  ${service.trim().replaceAll('\n', '\n  ')}
resources:
  ports: 8081
  cpus: 2+
  ${resources.trim().replaceAll('\n', '\n  ')}
workdir: .
run: python3 server.py
`);
  expect(unsupportedFeatures(task)).toEqual([]);
  return task;
}

/** The wanted replicas while this many spot replicas are ready. */
function wanted(task: Task, readySpot: number): MarketCounts | undefined {
  const policy = task.service?.replicaPolicy;
  if (policy === undefined) throw new Error('no service');
  return wantedMarkets(task, { target: policy.minReplicas, desired: policy.minReplicas + policy.numOverprovision, readySpot });
}

test('spot only: no replica is on demand, even while spot is missing', () => {
  const task = read('replica_policy: {min_replicas: 2, max_replicas: 3, target_qps_per_replica: 1}', 'infra: gcp\nuse_spot: true');
  expect([wanted(task, 0), wanted(task, 2)]).toEqual([
    { spot: 2, onDemand: 0 },
    { spot: 2, onDemand: 0 },
  ]);
});

test('base_ondemand_fallback_replicas: one of the replicas is on demand, whatever spot does', () => {
  const task = read(
    'replica_policy:\n  min_replicas: 2\n  max_replicas: 2\n  target_qps_per_replica: 1\n  base_ondemand_fallback_replicas: 1',
    'any_of:\n- zone: us-central1-a\n- region: us-east1\nuse_spot: true',
  );
  expect([wanted(task, 0), wanted(task, 1)]).toEqual([
    { spot: 1, onDemand: 1 },
    { spot: 1, onDemand: 1 },
  ]);
});

test('dynamic_ondemand_fallback: one on demand for each spot replica that is not ready', () => {
  const task = read(
    'replica_policy:\n  min_replicas: 2\n  max_replicas: 3\n  target_qps_per_replica: 1\n  dynamic_ondemand_fallback: true',
    'cloud: gcp\nzone: us-central1-a\nuse_spot: true',
  );
  expect([0, 1, 2].map((ready) => wanted(task, ready)?.onDemand)).toEqual([2, 1, 0]);
});

test('both fallbacks: the base stays, and the rest follows the ready spot replicas', () => {
  const task = read(
    'replica_policy:\n  min_replicas: 3\n  base_ondemand_fallback_replicas: 1\n  dynamic_ondemand_fallback: true',
    'accelerators: L4\nuse_spot: true',
  );
  expect([0, 1, 2].map((ready) => wanted(task, ready))).toEqual([
    { spot: 2, onDemand: 3 },
    { spot: 2, onDemand: 2 },
    { spot: 2, onDemand: 1 },
  ]);
});

test('spot_placer with num_overprovision and fallback: only the additional spot replica has no fallback', () => {
  const task = read(
    `replica_policy:
  min_replicas: 1
  max_replicas: 3
  target_qps_per_replica: 10
  num_overprovision: 1
  dynamic_ondemand_fallback: true
  spot_placer: dynamic_fallback`,
    'infra: aws\nany_of:\n- infra: aws\n- infra: gcp/*/asia-northeast3-a\nuse_spot: true\naccelerators: L4',
  );
  expect([spotPlacerOf(task), wanted(task, 0), wanted(task, 2)]).toEqual([
    'dynamic_fallback',
    { spot: 2, onDemand: 1 },
    { spot: 2, onDemand: 0 },
  ]);
  // The common `infra` gives way to that of each alternative.
  expect(task.resources.choices.map(({ cloud, zone }) => `${cloud} ${zone ?? '*'}`)).toEqual(['aws *', 'gcp asia-northeast3-a']);
});

test('num_overprovision alone: the additional replicas are spot and have no fallback', () => {
  const task = read('replica_policy: {min_replicas: 2, num_overprovision: 1}', 'use_spot: true');
  expect([wanted(task, 0), marketRange(task, 2)?.mostOnDemand]).toEqual([{ spot: 3, onDemand: 0 }, 0]);
});

test('accelerators in order: both markets keep the order', () => {
  const task = read(
    'replica_policy:\n  min_replicas: 2\n  base_ondemand_fallback_replicas: 1',
    'ordered:\n- accelerators: V100\n- accelerators: T4\nuse_spot: true',
  );
  expect([task.resources.order, wanted(task, 1)]).toEqual(['ordered', { spot: 1, onDemand: 1 }]);
  const onDemand = alternativesFor(task.resources, 'on-demand');
  expect(onDemand.choices.map(({ accelerator, useSpot }) => `${accelerator?.name} ${useSpot}`)).toEqual(['V100 false', 'T4 false']);
});

test('a set of accelerators with a dynamic fallback: any of them in either market', () => {
  const task = read(
    'replica_policy:\n  min_replicas: 2\n  dynamic_ondemand_fallback: true',
    'accelerators: {L4, A10G, T4}\nuse_spot: true',
  );
  const choices = (['spot', 'on-demand'] as const).map((market) => alternativesFor(task.resources, market).choices.length);
  expect([choices, wanted(task, 1)]).toEqual([[3, 3], { spot: 2, onDemand: 1 }]);
});

test('spot and on demand in any_of: the search may take either', () => {
  const task = read('replica_policy: {min_replicas: 2}', 'any_of:\n- use_spot: true\n- use_spot: false');
  expect([wanted(task, 0), task.resources.choices.map(({ useSpot }) => useSpot)]).toEqual([undefined, [true, false]]);
});
