import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer } from '../support/balancer.ts';
import { readEvents, type SeenStream } from '../support/event-client.ts';
import { printFigures, quantile, spread } from '../support/figures.ts';
import { httpReplica, RawClient, withReplicas } from '../support/raw-http.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const ascending = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

const median = (values: readonly number[]): number => quantile(ascending(values), 0.5);
/** The time of the few that no other process of a busy machine delays. */
const undisturbed = (values: readonly number[]): number => quantile(ascending(values), 0.1);

/** 200 concurrent streams, spread over the ports. */
const readMany = (ports: readonly number[]): Promise<readonly SeenStream[]> =>
  Promise.all(upTo(200).map((index) => readEvents(ports[index % ports.length] ?? 0)));

const lagsOf = (streams: readonly SeenStream[]): readonly number[] => ascending(streams.flatMap(({ lags }) => lags));

/** Writes an event and waits for its arrival, `count` times; returns the ms of each. */
async function oneByOne(port: number, streams: readonly ServerResponse[], count: number): Promise<readonly number[]> {
  const client = new RawClient(port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  const before = streams.length;
  const stream = await waitFor('the request', () => streams[before], { everyMs: 1 });
  const took: number[] = [];
  for (let event = 1; event <= count; event += 1) {
    const sentAt = performance.now();
    stream.write(`data: ${event}\n\n`);
    await waitFor(`event ${event}`, () => client.received.includes(`data: ${event}\n\n`), { everyMs: 1, describe: () => client.received });
    took.push(performance.now() - sentAt);
  }
  client.destroy();
  return took;
}

// Each event is sent after the previous one has arrived, so a proxy that batches would fail on any machine.
test('60 events are delivered one by one', async () => {
  const streams: ServerResponse[] = [];
  const replica = httpReplica((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    streams.push(response);
  });
  await withReplicas([replica], async (server) => {
    const port = server?.port ?? 0;
    await withBalancer([aBalancerReplica(port)], async (balancer) => {
      const direct = await oneByOne(port, streams, 60);
      const through = await oneByOne(balancer.port, streams, 60);
      printFigures('60 events one by one', { 'ms direct': spread(ascending(direct)), 'ms through': spread(ascending(through)) });
      // A proxy that batches adds 50 ms and more to each.
      expect(undisturbed(through) - undisturbed(direct)).toBeLessThan(20);
    });
  });
});

test('60 events, one each 50 ms, all arrive in order', async () => {
  await withFaultyService([{ type: 'events', everyMs: 10, count: 50 }], async (balancer, [replica]) => {
    // The first execution in a process is slow.
    await readEvents(balancer.port);
    await replica?.become({ type: 'events', everyMs: 50, count: 60 });
    const direct = await readEvents(replica?.port ?? 0);
    const through = await readEvents(balancer.port);
    printFigures('60 events at 50 ms', {
      'lag direct, ms': spread(ascending(direct.lags)),
      'lag through, ms': spread(ascending(through.lags)),
      'separate reads': `${through.reads}, direct ${direct.reads}`,
    });
    expect(through).toMatchObject({ numbers: upTo(60), isComplete: true });
  });
});

test('the first event is as early as without the balancer', async () => {
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
    // The documented limit is 5 ms; proxies that buffer output take 50 ms and more.
    expect(undisturbed(through) - undisturbed(direct)).toBeLessThan(20);
  });
});

test('200 streams with an event per 25 ms deliver in order and on time', async () => {
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
