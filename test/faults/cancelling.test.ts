import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RunningBalancer } from '../support/balancer.ts';
import { idHeader, machineTime, type Behaviour } from '../support/faulty-replica/behaviour.ts';
import type { FaultyReplica } from '../support/faulty-replica/faulty-replica.ts';
import { printFigures, quantile, spread } from '../support/figures.ts';
import { RawClient } from '../support/raw-http.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const times = 20;
/** 200 ms is promised; the rest is for a machine that is busy. */
const usuallyMs = 1_000;
/** When a process stands still at the wrong moment; without a sign of the client's leaving, a replica is free after `idleTimeoutMs` at the earliest. */
const latestMs = 10_000;
const idleTimeoutMs = 60_000;

const get = (id: string): string => `GET / HTTP/1.1\r\nHost: h\r\n${idHeader}: ${id}\r\n\r\n`;
const upload = (id: string): string => `POST / HTTP/1.1\r\nHost: h\r\n${idHeader}: ${id}\r\nContent-Length: 100000000\r\n\r\n`;

/** Sends until the other end takes no more for a while. */
async function sendUntilHeldUp(client: RawClient): Promise<void> {
  const block = 'x'.repeat(65_536);
  for (let isFlowing = true; isFlowing;) {
    client.send(block);
    isFlowing = await Promise.race([new Promise<boolean>((resolve) => client.socket.write('', () => resolve(true))), sleep(300, false)]);
  }
}

/** The phase in which the client leaves, what the replica does, and how the client gets into it. */
const phases: readonly (readonly [name: string, behaviour: Behaviour, enter: (client: RawClient, id: string) => Promise<void>])[] = [
  ['the request was sent', { type: 'hang' }, async (client, id) => void client.send(get(id))],
  [
    'the answer is streamed',
    { type: 'events', everyMs: 20, count: 5_000 },
    async (client, id) => void (await client.send(get(id)).until(/data: 1 /)),
  ],
  ['a part of its body was sent', { type: 'hang' }, async (client, id) => void client.send(upload(id)).send('x'.repeat(100_000))],
];

test.each(phases)('a client that leaves when %s is gone for the replica at once', async (name, behaviour, enter) => {
  await withFaultyService(
    [behaviour],
    async (balancer, [replica]) => {
      const leftAt = new Map<string, number>();
      for (let turn = 0; turn < times; turn += 1) await leaveOnce(balancer, `t${turn}`);

      async function leaveOnce({ port }: RunningBalancer, id: string): Promise<void> {
        const client = new RawClient(port);
        await enter(client, id);
        await waitFor('the replica to have it', () => noted(replica, id, 'got'), { everyMs: 2 });
        leftAt.set(id, machineTime());
        if (leftAt.size % 2 === 0) client.destroy();
        else client.socket.resetAndDestroy();
      }

      const gone = await waitFor('the replica to see all of them leave', () => {
        const left = replica?.journal().filter(({ what }) => what === 'left') ?? [];
        return left.length === times ? left : undefined;
      });
      const latencies = gone.map(({ id, at }) => at - (leftAt.get(id) ?? 0)).toSorted((a, b) => a - b);
      printFigures(`cancel when ${name}`, { ms: spread(latencies) });
      expect(quantile(latencies, 0.5)).toBeLessThan(usuallyMs);
      expect(latencies.at(-1)).toBeLessThan(latestMs);
      expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0 });
    },
    { idleTimeoutMs, firstByteTimeoutMs: idleTimeoutMs },
  );
});

const noted = (replica: FaultyReplica | undefined, id: string, kind: string): boolean =>
  replica?.journal().some((entry) => entry.id === id && entry.what === kind) === true;

// A client that closes in order while its own data is still queued cannot be told from one that waits: its end comes after the data.
test('a client that resets while the replica takes no more of its body frees the replica', async () => {
  await withFaultyService(
    [{ type: 'unread' }],
    async (balancer, [replica]) => {
      const clients = Array.from({ length: 5 }, (_, index) => ({ client: new RawClient(balancer.port), id: `t${index}` }));
      await Promise.all(clients.map(({ client, id }) => sendUntilHeldUp(client.send(upload(id)))));
      await waitFor('all to be under way', () => clients.every(({ id }) => noted(replica, id, 'got')));
      const leftAt = performance.now();
      for (const { client } of clients) client.socket.resetAndDestroy();
      await waitFor('the counts to be zero', () => balancer.link.lastStats?.inFlight['1'] === 0, { everyMs: 5 });
      // The counts are reported each 250 ms.
      printFigures('cancel when the upload is held up', { 'ms until the report': performance.now() - leftAt });
      expect(performance.now() - leftAt).toBeLessThan(latestMs);
    },
    { idleTimeoutMs },
  );
});

test('a client that leaves while its request waits for a replica frees its place at once, and nothing of it is sent later', async () => {
  await withFaultyService(
    [{ type: 'refuse' }],
    async (balancer, [replica]) => {
      const clients = Array.from({ length: times }, (_, index) => new RawClient(balancer.port).send(get(`t${index}`)));
      await waitFor('all to wait', () => balancer.link.lastStats?.queued === times);
      for (const client of clients) client.destroy();
      await waitFor('all places to be free', () => balancer.link.lastStats?.queued === 0);
      await replica?.become({ type: 'answer' });
      const last = new RawClient(balancer.port).send(get('last'));
      await last.until(/ok$/);
      last.destroy();
      await waitFor('the replica to note its end', () => noted(replica, 'last', 'done'));
      expect(replica?.journal().map(({ id }) => id)).toEqual(['last', 'last']);
      await countsAtZero(balancer);
    },
    { queue: { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: 60_000, fromZero: false } },
  );
});

test('10,000 requests that are given up in all phases leave all counts at zero', async () => {
  const random: Behaviour = { type: 'events', everyMs: 8, count: 3 };
  await withFaultyService([random, random, { type: 'hang' }, { type: 'answer', spreadMs: 10 }], async (balancer, replicas) => {
    let begun = 0;
    const worker = async (): Promise<void> => {
      while (begun < 10_000) {
        begun += 1;
        const client = new RawClient(balancer.port).send(begun % 3 === 0 ? `${upload(`t${begun}`)}xyz` : get(`t${begun}`));
        await sleep(Math.random() * 30);
        if (begun % 2 === 0) client.destroy();
        else client.socket.resetAndDestroy();
      }
    };
    await Promise.all(Array.from({ length: 64 }, worker));
    const stats = await countsAtZero(balancer);
    expect([stats.inFlight, stats.queued]).toEqual([{ 1: 0, 2: 0, 3: 0, 4: 0 }, 0]);
    // Some leave before anything of theirs was read.
    expect(stats.requestsTotal).toBeGreaterThan(5_000);
    for (const replica of replicas) {
      // Each connection that is left is an idle one: a request that was given up takes its connection with it.
      const journal = replica.journal();
      const begunHere = journal.filter(({ what }) => what === 'got').length;
      await waitFor('its requests to have ended', () => replica.journal().filter(({ what }) => what !== 'got').length === begunHere);
    }
    printFigures('10,000 requests given up', { 'reached a replica': stats.requestsTotal });
  });
});
