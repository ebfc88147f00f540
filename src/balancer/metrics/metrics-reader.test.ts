import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openRecord, type AccessRecord } from '../access-log/access-record.ts';
import { MetricsReader } from './metrics-reader.ts';
import type { LabelName, MetricKey } from './metric-table.ts';
import { createMetricsMemory, metricsRow, metricsRows, threadCells, threadCellSizes, blockOf, noSlot } from './row-layout.ts';
import { Samples } from './samples.ts';
import { ThreadMetrics } from './thread-metrics.ts';

function someThreads(count: number) {
  const memory = createMetricsMemory(count);
  const reader = new MetricsReader(metricsRows(memory));
  const threads = Array.from({ length: count }, (_, thread) => new ThreadMetrics(metricsRow(memory, thread)));
  const read = (): Samples => {
    const samples = new Samples();
    reader.read(samples);
    return samples;
  };
  const value = (key: MetricKey, ...labels: readonly string[]): number | undefined =>
    read()
      .numbers(key)
      .find((sample) => Object.values(sample.labels).join() === labels.join())?.value;
  return { memory, reader, threads, read, value };
}

const aRecord = (changes: Partial<AccessRecord> = {}): AccessRecord => ({
  ...openRecord(0, 0),
  status: 200,
  outcome: 'ok',
  replica: { id: 7, slot: 2, location: 'local' },
  attempts: 1,
  sentMs: 1,
  firstByteMs: 31,
  totalMs: 700,
  bytesIn: 10,
  bytesOut: 20,
  ...changes,
});

test('counts of all threads are added up', () => {
  const { reader, threads, value, read } = someThreads(2);
  reader.assign(2, 7);
  for (const thread of threads) thread.requestEnded(aRecord());
  threads[0]?.requestEnded(aRecord({ status: 503, outcome: 'unavailable', code: 'no_ready_replica', replica: undefined, attempts: 0 }));
  expect(value('requests', '200', '7')).toBe(2);
  expect(value('requests', '503', 'none')).toBe(1);
  expect(value('rejected', 'no_ready_replica')).toBe(1);
  expect([value('attempts'), value('received'), value('sent')]).toEqual([2, 30, 60]);
  const [duration] = read().distributions('duration');
  expect([duration?.buckets[9], duration?.sum]).toEqual([3, expect.closeTo(2.1)]);
  const [firstByte] = read().distributions('replicaFirstByte');
  expect([firstByte?.buckets, firstByte?.sum]).toEqual([[2], expect.closeTo(0.06)]);
});

test('each outcome of a request has its count', () => {
  const { threads, value } = someThreads(1);
  const [thread] = threads;
  thread?.requestEnded(aRecord({ outcome: 'client_gone' }));
  thread?.requestEnded(aRecord({ outcome: 'truncated' }));
  thread?.requestEnded(aRecord({ outcome: 'refused', code: 'bad_host', status: 400 }));
  thread?.retry('idle_closed');
  thread?.connectFailed('timeout');
  thread?.tlsHandshake(true);
  thread?.tlsHandshake(false);
  thread?.connectionOpened();
  thread?.logLinesLost(3);
  expect([value('clientGone'), value('truncated'), value('rejected', 'bad_host')]).toEqual([1, 1, 1]);
  expect([value('retries', 'idle_closed'), value('retries', 'lost'), value('connectFailures', 'timeout')]).toEqual([1, 0, 1]);
  expect([value('tlsHandshakes'), value('tlsFailures'), value('clientConnectionsOpened'), value('logLinesLost')]).toEqual([1, 1, 1, 3]);
});

test('queue waits have a histogram, and WebSocket sessions are not in durations', () => {
  const { threads, read } = someThreads(1);
  threads[0]?.requestEnded(aRecord({ queuedMs: 2_000, protocol: 'ws', totalMs: 3_600_000 }));
  threads[0]?.requestEnded(aRecord());
  const counts = (key: MetricKey): number | undefined =>
    read()
      .distributions(key)[0]
      ?.buckets.reduce((sum, count) => sum + count, 0);
  expect([counts('queueWait'), counts('duration'), counts('firstByte')]).toEqual([1, 1, 2]);
});

test('when a thread dies, counters stay and its open connections are subtracted', () => {
  const { memory, threads, value } = someThreads(2);
  for (const thread of threads) {
    thread.connectionOpened();
    thread.replicaConnectionOpened();
  }
  const next = new ThreadMetrics(metricsRow(memory, 1));
  expect([value('clientConnectionsOpened'), value('replicaConnectionsOpened'), value('replicaConnections')]).toEqual([2, 2, 1]);
  next.replicaConnectionOpened();
  next.replicaConnectionClosed();
  expect([value('replicaConnectionsOpened'), value('replicaConnections')]).toEqual([3, 1]);
});

test('values of a replica stay until its slot is reassigned, which starts at 0', () => {
  const { reader, threads, value } = someThreads(1);
  reader.assign(2, 7);
  threads[0]?.requestEnded(aRecord());
  threads[0]?.ejected(2);
  reader.assign(2, 7);
  expect([value('requests', '200', '7'), value('ejections', '7')]).toEqual([1, 1]);
  reader.assign(2, 8);
  expect([value('requests', '200', '7'), value('ejections', '7'), value('ejections', '8')]).toEqual([undefined, undefined, 0]);
  threads[0]?.requestEnded(aRecord());
  expect(value('requests', '200', '8')).toBe(1);
});

test('a replica that moved has one series over two slots', () => {
  const { reader, threads, read, value } = someThreads(1);
  reader.assign(2, 7);
  reader.assign(3, 7);
  threads[0]?.requestEnded(aRecord());
  threads[0]?.requestEnded(aRecord({ replica: { id: 7, slot: 3, location: 'local' } }));
  expect(value('requests', '200', '7')).toBe(2);
  expect(read().numbers('ejections')).toHaveLength(1);
});

test('each thread reports its own delay and usage', () => {
  const { threads, read } = someThreads(2);
  threads[1]?.timerFired(0.02);
  threads[1]?.used(0.5, 0.25);
  const of = (key: MetricKey, name: LabelName): readonly unknown[] =>
    read()
      .numbers(key)
      .map((sample) => [sample.labels[name], sample.value]);
  expect(of('threadBusy', 'thread')).toEqual([
    ['0', 0],
    ['1', 0.5],
  ]);
  expect(of('threadCpu', 'thread')).toEqual([
    ['0', 0],
    ['1', 0.25],
  ]);
  expect(read().distributions('threadDelay')[1]?.buckets[4]).toBe(1);
});

test('no two values share a cell', () => {
  const taken = Object.entries(threadCells).map(([name, at]) => ({
    at,
    size: Object.entries(threadCellSizes).find(([other]) => other === name)?.[1] ?? 0,
  }));
  const ends = taken.toSorted((a, b) => a.at - b.at);
  let next = 0;
  for (const { at, size } of ends) {
    expect(at).toBe(next);
    next = at + size;
  }
  expect(blockOf(noSlot)).toBe(next);
});

test('for any requests in any threads, codes and histograms add up to the requests', () => {
  const record = fc.record({
    thread: fc.nat(2),
    status: fc.integer({ min: 0, max: 700 }),
    slot: fc.nat(2_047),
    totalMs: fc.double({ min: 0, max: 1e7, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 30 }), (all) => {
      const { reader, threads, read } = someThreads(3);
      for (const { thread, status, slot, totalMs } of all) {
        reader.assign(slot, slot);
        threads[thread]?.requestEnded(aRecord({ status, totalMs, replica: { id: slot, slot, location: 'local' } }));
      }
      const samples = read();
      const requests = samples.numbers('requests').reduce((sum, { value }) => sum + value, 0);
      const durations = samples.distributions('duration')[0]?.buckets.reduce((sum, count) => sum + count, 0);
      return requests === all.length && durations === all.length;
    }),
  );
});
