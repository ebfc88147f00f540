import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { printFigures } from '../support/figures.ts';
import { RawClient } from '../support/raw-http.ts';
import { Traffic } from '../support/traffic.ts';
import { countsAtZero, withFaultyService } from './support.ts';

const mebibyte = 1_048_576;
const readers = 40;
/**
 * Growth of a process that does not depend on the number of streams: first execution of code, and garbage before its
 * collection.
 */
const noise = 30 * mebibyte;

test('slow readers of 100 MB cost 2 MiB each, and others are served', async () => {
  await withFaultyService([{ type: 'answer' }], async (balancer, [replica]) => {
    const traffic = new Traffic(balancer.url, 16);
    await traffic.sendMany(3_000, 16, () => ({}));
    const before = balancer.memory();
    await replica?.become({ type: 'answer', bytes: 100 * mebibyte });
    const clients = Array.from({ length: readers }, () => new RawClient(balancer.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n'));
    // Small read sizes, once each stream has begun.
    await Promise.all(clients.map((client) => client.until(/\r\n\r\nx/)));
    const timer = setInterval(() => {
      for (const { socket } of clients) {
        socket.pause();
        socket.read(1_024);
      }
    }, 1_000);
    await sleep(8_000);
    const during = balancer.memory();
    await replica?.become({ type: 'answer' });
    await traffic.sendMany(1_000, 8, () => ({}));
    clearInterval(timer);
    for (const client of clients) client.destroy();
    await countsAtZero(balancer);
    await sleep(1_000);
    printFigures(`${readers} readers of 100 MB at 1 KB/s`, {
      'MiB before': before / mebibyte,
      'MiB each': (during - before) / mebibyte / readers,
      'MiB afterwards': balancer.memory() / mebibyte,
    });
    expect(during - before).toBeLessThan(readers * 2 * mebibyte + noise);
    expect(traffic.outcomes.filter(({ status }) => status !== 200)).toEqual([]);
    traffic.close();
  });
});
