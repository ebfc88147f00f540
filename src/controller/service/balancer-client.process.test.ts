import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { BalancerReport } from '../../domain/balancer-link.ts';
import { systemClock } from '../../shared/clock.ts';
import { BalancerClient } from './balancer-client.ts';

/** A balancer's end of the connection: records received lines and sends reports. */
class FakeBalancer {
  readonly received: string[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(path: string, startedAt: number) {
    rmSync(path, { force: true });
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('data', (data) => this.received.push(data.toString()));
      this.say({ type: 'hello', pid: process.pid, port: 1, startedAt });
    }).listen(path);
  }

  say(report: BalancerReport): void {
    for (const socket of this.#sockets) socket.write(`${JSON.stringify(report)}\n`);
  }

  stats(requestsTotal: number, more: { readonly inFlight?: Readonly<Record<string, number>>; readonly queued?: number } = {}): void {
    this.say({ type: 'stats', at: 0, requestsTotal, errorsTotal: 0, inFlight: {}, queued: 0, ...more });
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

test('a successor gets the newest set; its count restarts; the view is empty between', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'b.sock');
    const arrivals: [count: number, queued: number][] = [];
    const stop = new AbortController();
    let balancer = new FakeBalancer(path, 1);
    const client = new BalancerClient(path, systemClock, pino({ level: 'silent' }));
    const listeners = {
      arrivals: (count: number, queued: number) => arrivals.push([count, queued]),
      suspect: () => undefined,
      tlsChanged: () => undefined,
    };
    const running = client.run(listeners, stop.signal);
    try {
      await waitFor('the hello', () => client.view.connected);
      client.send({ type: 'replicas', epoch: 'e', revision: 7, replicas: [] });
      balancer.stats(100, { inFlight: { 1: 2 }, queued: 3 });
      balancer.stats(105, { inFlight: { 1: 2 }, queued: 3 });
      await waitFor('the figures', () => arrivals.length === 2);
      expect([arrivals, client.view]).toEqual([
        [
          [0, 3],
          [5, 3],
        ],
        { connected: true, inFlight: { 1: 2 }, queued: 3, outcomes: {}, broken: {}, reports: 2, hellos: 1 },
      ]);
      balancer.end();
      await waitFor('the link to break', () => !client.view.connected);
      expect(client.view).toEqual({ connected: false, inFlight: {}, queued: 0, outcomes: {}, broken: {}, reports: 2, hellos: 1 });
      balancer = new FakeBalancer(path, 2);
      await waitFor('the successor', () => balancer.received.join('').includes('"revision":7'));
      expect(await client.applied(7, 0)).toBe(false);
      balancer.say({ type: 'applied', epoch: 'e', revision: 7 });
      balancer.stats(4, { inFlight: { 1: 1 } });
      await waitFor('its figures', () => arrivals.length === 3);
      expect([arrivals[2], client.view, await client.applied(7, 0)]).toEqual([
        [4, 0],
        { connected: true, inFlight: { 1: 1 }, queued: 0, outcomes: {}, broken: {}, reports: 3, hellos: 2 },
        true,
      ]);
    } finally {
      stop.abort();
      balancer.end();
      await running;
    }
  });
});

test('a balancer that reads slowly gets the newest set next, not each one between', async () => {
  const written: string[] = [];
  const unfinished: (() => void)[] = [];
  const socket = new Duplex({
    read: () => undefined,
    writableHighWaterMark: 1,
    write(chunk: Buffer, _, done) {
      written.push(/"revision":(\d+)/.exec(chunk.toString())?.[1] ?? '');
      unfinished.push(done);
    },
  });
  const stop = new AbortController();
  const client = new BalancerClient(() => Promise.resolve(socket), systemClock, pino({ level: 'silent' }));
  const send = (revision: number): void => client.send({ type: 'replicas', epoch: 'e', revision, replicas: [aBalancerReplica(80)] });
  const running = client.run({ arrivals: () => undefined, suspect: () => undefined, tlsChanged: () => undefined }, stop.signal);
  send(1);
  await waitFor('the first set', () => written.length === 1);
  for (let revision = 2; revision < 10; revision += 1) send(revision);
  expect(written).toEqual(['1']);
  unfinished.shift()?.();
  await waitFor('the next set', () => written.length > 1);
  expect(written).toEqual(['1', '9']);
  unfinished.shift()?.();
  stop.abort();
  await running;
});
