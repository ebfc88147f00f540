import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { MetricsReader } from './metrics-reader.ts';
import { createMetricsMemory, metricsRow, metricsRows } from './row-layout.ts';
import { Samples } from './samples.ts';
import { ThreadMetrics } from './thread-metrics.ts';
import { readThreadUsage, sampleThread } from './thread-sampler.ts';

test('a thread reports its usage each second and its delay ten times a second', async () => {
  const clock = new FakeClock();
  const memory = createMetricsMemory(1);
  let busy = 50;
  sampleThread(new ThreadMetrics(metricsRow(memory, 0)), clock, () => ({ busy, cpu: busy / 2 }));
  busy = 51.5;
  await clock.advance(1_000);
  const samples = new Samples();
  new MetricsReader(metricsRows(memory)).read(samples);
  expect(samples.numbers('threadBusy')[0]?.value).toBe(1.5);
  expect(samples.numbers('threadCpu')[0]?.value).toBe(0.75);
  expect(samples.distributions('threadDelay')[0]?.buckets[0]).toBe(10);
});

test('usage of this thread is in seconds and never decreases', () => {
  const [first, second] = [readThreadUsage(), readThreadUsage()];
  expect(first.cpu).toBeGreaterThan(0);
  expect(first.cpu).toBeLessThan(3_600);
  expect(second.cpu).toBeGreaterThanOrEqual(first.cpu);
  expect(second.busy).toBeGreaterThanOrEqual(first.busy);
});
