import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { firstByteLimitsMs, waitLimitsMs } from '../../domain/outcomes.ts';
import { OutcomeReader } from './outcome-reader.ts';
import { createMetricsMemory, metricsRows } from './row-layout.ts';
import { ThreadMetrics } from './thread-metrics.ts';

const aReplica = (id: number, version: number, slot = id) => ({ ...aBalancerReplica(id, id, { version }), slot });

function twoThreads() {
  const rows = metricsRows(createMetricsMemory(2));
  const [one, two] = rows.map((row) => new ThreadMetrics(row));
  if (one === undefined || two === undefined) throw new Error('no threads');
  return { reader: new OutcomeReader(rows), one, two };
}

const waits = (...counts: readonly number[]): readonly number[] => waitLimitsMs.map((_, limit) => counts[limit] ?? 0);

const buckets = (...indexes: readonly number[]): readonly number[] =>
  Array.from({ length: firstByteLimitsMs.length + 1 }, (_, index) => indexes.filter((other) => other === index).length);

test('the counts of all threads are added, with first bytes by bucket', () => {
  const { reader, one, two } = twoThreads();
  reader.setReplicas([aReplica(1, 1), aReplica(2, 2)]);
  one.replied(1, 0.4);
  two.replied(1, 1.5);
  two.erred(1, true);
  one.erred(1, false);
  one.replied(2, 700_000);
  expect(reader.read()).toEqual({
    1: { responses: 3, errors: 2, firstByteCounts: buckets(0, 3), waitCounts: waits() },
    2: { responses: 1, errors: 0, firstByteCounts: buckets(78), waitCounts: waits() },
  });
});

test('a replica that only hangs is reported by the waits of its requests', () => {
  const { reader, one, two } = twoThreads();
  reader.setReplicas([aReplica(1, 1), aReplica(2, 2)]);
  one.waited(2, 0);
  two.waited(2, 0);
  two.waited(2, 1);
  expect(reader.read()).toEqual({ 2: { responses: 0, errors: 0, firstByteCounts: buckets(), waitCounts: waits(2, 1) } });
});

test('with one version there are no outcomes, except changes that come late', () => {
  const { reader, one } = twoThreads();
  reader.setReplicas([aReplica(1, 1)]);
  expect(reader.read()).toBeUndefined();
  reader.setReplicas([aReplica(1, 1), aReplica(2, 2)]);
  expect(reader.read()).toEqual({});
  one.replied(1, 1);
  reader.read();
  // The replica crashes: it leaves the set when its requests fail.
  reader.setReplicas([aReplica(1, 1)]);
  one.erred(2, false);
  expect(reader.read()).toEqual({ 2: { responses: 1, errors: 1, firstByteCounts: buckets(), waitCounts: waits() } });
  expect(reader.read()).toBeUndefined();
  expect(reader.total()).toMatchObject({ 1: { responses: 1 }, 2: { errors: 1 } });
});

test('a slot counts for its new replica from 0', () => {
  const { reader, one } = twoThreads();
  reader.setReplicas([aReplica(1, 1), aReplica(2, 2)]);
  one.replied(2, 1);
  reader.setReplicas([aReplica(1, 1), aReplica(3, 3, 2)]);
  one.replied(2, 1);
  expect(reader.read()).toEqual({ 3: { responses: 1, errors: 0, firstByteCounts: buckets(0), waitCounts: waits() } });
});

test('the counts of predecessors are added', () => {
  const { reader, one } = twoThreads();
  reader.setReplicas([aReplica(1, 1), aReplica(2, 2)]);
  one.replied(1, 1);
  const news = { responses: 2, errors: 1, firstByteCounts: buckets(0), waitCounts: waits() };
  reader.add({ 1: news });
  reader.add({ 1: news });
  expect(reader.read()).toEqual({ 1: { responses: 5, errors: 2, firstByteCounts: buckets(0, 0, 0), waitCounts: waits() } });
});
