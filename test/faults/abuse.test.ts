import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fileLimits, openFilesLimit } from '../../src/balancer/threads/connection-limit.ts';
import type { RunningBalancer } from '../support/balancer.ts';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { printFigures, quantile, spread } from '../support/figures.ts';
import { RawClient } from '../support/raw-http.ts';
import { latencies, Traffic, type Outcome } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const working: Behaviour = { type: 'answer', afterMs: 5, spreadMs: 5 };
const measureMs = 4_000;

/** Sends honest requests before and during an attack: all must succeed, and their times are printed. */
async function expectHonestTrafficUnharmed(
  name: string,
  balancer: RunningBalancer,
  attack: () => Promise<() => Promise<void> | void>,
): Promise<void> {
  const traffic = new Traffic(balancer.url);
  const stop = traffic.begin(16, 10, (index) => (index % 4 === 0 ? { method: 'POST', body: 'x'.repeat(2_000) } : {}));
  await sleep(1_000);
  const beforeAt = performance.now();
  await sleep(measureMs);
  const end = await attack();
  const attackedAt = performance.now();
  await sleep(measureMs);
  const endedAt = performance.now();
  await end();
  const outcomes = await stop();
  traffic.close();
  const within = (from: number, to: number): readonly number[] =>
    latencies(outcomes.filter(({ startedAt }) => startedAt >= from && startedAt < to));
  const before = within(beforeAt, beforeAt + measureMs);
  const during = within(attackedAt, endedAt);
  printFigures(`honest traffic beside ${name}`, {
    'ms before': spread(before),
    'ms during': spread(during),
    'p99 ratio': quantile(during, 0.99) / quantile(before, 0.99),
    MiB: balancer.memory() / 1_048_576,
  });
  expect(outcomes.filter(({ status, error }: Outcome) => status !== 200 || error !== undefined)).toEqual([]);
  await countsAtZero(balancer);
}

function openMany(port: number, count: number, first: string): readonly Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('error', () => undefined);
    socket.write(first);
    return socket;
  });
}

test('500 heads sent bytewise are cut after 10 s, without effect on others', async () => {
  await withFaultyService([working, working], async (balancer) => {
    await expectHonestTrafficUnharmed('500 slow heads', balancer, async () => {
      const clients = Array.from({ length: 500 }, () => new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\nX-Slow: '));
      const timer = setInterval(() => clients.forEach((client) => client.send('x')), 500);
      return async () => {
        await waitFor('all to be answered', () => clients.every(({ received }) => received.startsWith('HTTP/1.1 408 ')));
        clearInterval(timer);
        clients.forEach((client) => client.destroy());
      };
    });
  });
});

test('200 bodies sent a byte per second are cut', async () => {
  await withFaultyService([working, working], async (balancer) => {
    await expectHonestTrafficUnharmed('200 slow bodies', balancer, async () => {
      const clients = Array.from({ length: 200 }, () =>
        new RawClient(balancer.port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n'),
      );
      const timer = setInterval(() => clients.forEach((client) => client.send('x')), 1_000);
      return async () => {
        await waitFor('all to be answered', () => clients.every(({ received }) => received.startsWith('HTTP/1.1 408 ')));
        clearInterval(timer);
        clients.forEach((client) => client.destroy());
      };
    });
  });
});

/** Each uses a file of the balancer and may need a second one. */
const many = Math.min(10_000, fileLimits(null, openFilesLimit(), 1).connections - 500);

test('10,000 idle connections, or the file limit, cost little memory and block no one', async () => {
  await withFaultyService([working, working], async (balancer) => {
    const memory = balancer.memory();
    await expectHonestTrafficUnharmed('idle connections, of which a fifth never sent anything', balancer, async () => {
      const sockets: Socket[] = [];
      while (sockets.length < many) {
        const isSilent = sockets.length >= many * 0.8;
        const batch = openMany(balancer.port, 250, isSilent ? '' : 'GET / HTTP/1.1\r\nHost: h\r\n\r\n');
        sockets.push(...batch);
        const isServed = ({ bytesRead, connecting }: Socket): boolean => !connecting && (isSilent || bytesRead > 0);
        await waitFor('a batch to be served', () => batch.every(isServed), { everyMs: 10 });
      }
      printFigures('idle connections', { count: sockets.length, 'KiB each': (balancer.memory() - memory) / 1_024 / sockets.length });
      return () => {
        // Those that never sent anything are closed after 10 s, which a busy machine may need for the rest of them.
        expect(sockets.filter(({ destroyed, bytesRead }) => destroyed && bytesRead > 0)).toEqual([]);
        sockets.forEach((socket) => socket.destroy());
      };
    });
  });
});

const tooMuch = [
  { text: `GET /${'x'.repeat(9_000)} HTTP/1.1\r\nHost: h\r\n\r\n`, status: '414' },
  { text: `GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`, status: '431' },
  { text: `GET / HTTP/1.1\r\nHost: h\r\n${'X: y\r\n'.repeat(120)}\r\n`, status: '431' },
] as const;

test('floods of long request lines, large heads and many fields are refused', async () => {
  await withFaultyService([working, working], async (balancer, replicas) => {
    await expectHonestTrafficUnharmed('200 heads a second that are too large', balancer, async () => {
      const seen: string[] = [];
      const one = async (text: string, status: string): Promise<void> => {
        const client = new RawClient(balancer.port).send(text);
        await client.closed();
        seen.push(`${status} was ${client.received.slice(9, 12)}`);
        client.destroy();
      };
      const timer = setInterval(() => {
        for (const { text, status } of tooMuch) void one(text, status);
      }, 15);
      return async () => {
        // A busy machine fires the timer rarely.
        await waitFor('enough answers', () => seen.length > 300);
        clearInterval(timer);
        expect([...new Set(seen)].toSorted()).toEqual(['414 was 414', '431 was 431']);
      };
    });
    expect(replicas.flatMap((replica) => replica.journal()).filter(({ id }) => id === '-')).toEqual([]);
  });
});

test.each([
  ['announced', `Content-Length: ${2 ** 30}`, false],
  ['in chunks', 'Transfer-Encoding: chunked', true],
])('a 1 GB upload over the limit, %s, gets 413 before its end', async (_, field, isChunked) => {
  await withFaultyService(
    [{ type: 'hang' }],
    async (balancer) => {
      const memory = balancer.memory();
      const client = new RawClient(balancer.port).send(`POST / HTTP/1.1\r\nHost: h\r\n${field}\r\n\r\n`);
      const block = Buffer.from(isChunked ? `10000\r\n${'x'.repeat(65_536)}\r\n` : 'x'.repeat(65_536));
      let sent = 0;
      while (client.received === '' && client.ended === undefined && sent < 2 ** 30) {
        sent += block.length;
        await new Promise<void>((resolve) => {
          client.socket.write(block, () => resolve());
        });
      }
      await client.until(/^HTTP\/1\.1 413 /);
      printFigures('1 GB over the limit', { 'MB sent before 413': sent / 1e6, 'MiB more': (balancer.memory() - memory) / 1_048_576 });
      expect(sent).toBeLessThan(64 * 2 ** 20);
      await countsAtZero(balancer);
      client.destroy();
    },
    { maxBodyBytes: 10 * 2 ** 20 },
  );
});
