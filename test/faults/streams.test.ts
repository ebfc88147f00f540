import { expect, test } from 'vitest';
import { readEvents, type SeenStream } from '../support/event-client.ts';
import { printFigures, quantile, spread } from '../support/figures.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const ascending = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

const median = (values: readonly number[]): number => quantile(ascending(values), 0.5);

/** 200 streams at once, spread over the ports. */
const readMany = (ports: readonly number[]): Promise<readonly SeenStream[]> =>
  Promise.all(upTo(200).map((index) => readEvents(ports[index % ports.length] ?? 0)));

const lagsOf = (streams: readonly SeenStream[]): readonly number[] => ascending(streams.flatMap(({ lags }) => lags));

// Only what holds up the whole machine for 50 ms joins two events.
test('60 events, one each 50 ms, are delivered one by one', { retry: 2 }, async () => {
  await withFaultyService([{ type: 'events', everyMs: 10, count: 50 }], async (balancer, [replica]) => {
    // What a process does for the first time takes it long.
    await readEvents(balancer.port);
    await replica?.become({ type: 'events', everyMs: 50, count: 60 });
    const direct = await readEvents(replica?.port ?? 0);
    const through = await readEvents(balancer.port);
    printFigures('60 events at 50 ms', {
      'lag direct, ms': spread(ascending(direct.lags)),
      'lag through, ms': spread(ascending(through.lags)),
      'separate reads': `${through.reads}, direct ${direct.reads}`,
    });
    expect(through).toMatchObject({ numbers: upTo(60), reads: 60, isComplete: true });
  });
});

test('the first event is there as soon as without the balancer', async () => {
  await withFaultyService([{ type: 'events', everyMs: 20, count: 1 }], async (balancer, [replica]) => {
    const direct: number[] = [];
    const through: number[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      direct.push((await readEvents(replica?.port ?? 0)).firstEventMs);
      through.push((await readEvents(balancer.port)).firstEventMs);
    }
    printFigures('first event', {
      'direct, median ms': median(direct),
      'through, median ms': median(through),
      overhead: median(through) - median(direct),
    });
    // 5 ms is promised; proxies that collect output first take 50 and more.
    expect(median(through) - median(direct)).toBeLessThan(20);
  });
});

test('200 streams with an event each 25 ms: each event comes, in order, and at its time', async () => {
  const streaming = { type: 'events', everyMs: 25, count: 160 } as const;
  await withFaultyService([streaming, streaming], async (balancer, replicas) => {
    const direct = await readMany(replicas.map(({ port }) => port));
    const through = await readMany([balancer.port]);
    printFigures('200 streams at 25 ms', {
      'lag direct, ms': spread(lagsOf(direct)),
      'lag through, ms': spread(lagsOf(through)),
      'extra p99, ms': quantile(lagsOf(through), 0.99) - quantile(lagsOf(direct), 0.99),
    });
    expect(through.filter(({ isComplete }) => !isComplete)).toEqual([]);
    for (const { numbers } of through) expect(numbers).toEqual(upTo(160));
    expect((await countsAtZero(balancer)).errorsTotal).toBe(0);
  });
});
