import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aBalancerReplica, balancerConfig, ControlLink, RunningBalancer } from '../../../test/support/balancer.ts';
import { openLoad, outcomes } from '../../../test/support/load.ts';
import { httpReplica, RawClient, withReplicas, type FakeReplica } from '../../../test/support/raw-http.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { BalancerConfig } from '../../domain/balancer-link.ts';

/** Requests of one load. On a slow machine the replicas' listening queues (511 in Node) can still hold all of them. */
const mostUnderWay = 32;

/** Answers at once; below /stream it sends a numbered event each 50 ms until the test ends the stream. */
function aReplica(streams: (() => void)[]): Promise<FakeReplica> {
  return httpReplica((request, response) => {
    if (request.url !== '/stream') {
      response.end('ok');
      return;
    }
    let count = 0;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => response.write(`data: ${(count += 1)}\n\n`), 50);
    response.on('close', () => clearInterval(timer));
    streams.push(() => response.end('data: end\n\n'));
  });
}

/** A balancer and all its successors by hand-over. */
class Line {
  readonly first: RunningBalancer;
  readonly pids: number[];
  link: ControlLink;

  constructor(first: RunningBalancer) {
    this.first = first;
    this.pids = [first.pid];
    this.link = first.link;
  }

  get port(): number {
    return this.first.port;
  }

  /** Waits until the current process has handed over, and connects to its successor. */
  async handOver(): Promise<void> {
    const before = this.link;
    before.send('{"type":"hand-over"}');
    await waitFor('the link to be cut', () => before.isClosed, { everyMs: 5, describe: () => this.first.output });
    before.close();
    this.link = new ControlLink(this.first.config.controlSocket);
    const hello = await waitFor('the successor', () => this.link.of('hello')[0], { everyMs: 5 });
    if (this.pids.includes(hello.pid)) throw new Error('the same process says hello again');
    this.pids.push(hello.pid);
  }

  async stop(): Promise<void> {
    this.link.close();
    // Also a successor that started unnoticed, when a test failed in the middle of a hand-over.
    const last = new ControlLink(this.first.config.controlSocket);
    const hello = await waitFor('the last of them', () => last.isClosed || last.of('hello')[0], { everyMs: 5 });
    last.close();
    const pids = new Set([...this.pids.slice(1), ...(hello === true ? [] : [hello.pid])]);
    for (const pid of pids) if (pid !== this.first.pid && isAlive(pid)) process.kill(-pid, 'SIGKILL');
    await this.first.stop();
  }

  /** Begins a hand-over whose successor blocks when it reads its config; resolves at that point. */
  async beginHandOver(): Promise<HeldSuccessor> {
    const { config } = this.first;
    const path = join(config.controlSocket, '..', 'balancer.json');
    rmSync(path);
    execFileSync('mkfifo', [path]);
    this.link.send('{"type":"hand-over"}');
    const pipe = await waitFor('the successor to read its config', () => openForReader(path), { everyMs: 5 });
    return {
      isThere() {
        const second = openForReader(path);
        if (second !== undefined) closeSync(second);
        return second !== undefined;
      },
      goOn: () => {
        writeSync(pipe, JSON.stringify({ ...config, port: this.port }));
        closeSync(pipe);
      },
    };
  }
}

/** A process that reads its config from a pipe. */
interface HeldSuccessor {
  isThere(): boolean;
  /** Sends it the config. */
  goOn(): void;
}

/** Opens a pipe for writing, once a process has opened it for reading. */
function openForReader(path: string): number | undefined {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // ENXIO: no process has.
    return undefined;
  }
}

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => resolve(true));
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // Gone.
    return false;
  }
}

async function withLine(
  use: (line: Line, replicas: readonly FakeReplica[], dir: string) => Promise<void>,
  changes: Partial<BalancerConfig> = {},
) {
  const streams: (() => void)[] = [];
  await withReplicas([aReplica(streams), aReplica(streams)], async (...replicas) => {
    await withTempHome(async (dir) => {
      const line = new Line(await RunningBalancer.start(balancerConfig(dir, changes)));
      try {
        await line.link.setReplicas(replicas.map(({ port }, index) => aBalancerReplica(port, index + 1)));
        await use(line, replicas, dir);
      } finally {
        await line.stop();
      }
    });
  });
}

const eventsOf = (text: string): readonly number[] => [...text.matchAll(/data: (\d+)\n/g)].map(([, count]) => Number(count));

test('ten hand-overs under load refuse or reset no connection and break no stream', async () => {
  await withLine(
    async (line, replicas) => {
      const url = `http://127.0.0.1:${line.port}/`;
      const stream = new RawClient(line.port).send('GET /stream HTTP/1.1\r\nHost: h\r\n\r\n');
      await stream.until(/data: 2/);
      const kept = openLoad({ url, keepAlive: true, mostUnderWay }, 200);
      const fresh = openLoad({ url, keepAlive: false, mostUnderWay }, 200);
      for (let turn = 1; turn <= 10; turn += 1) {
        await line.handOver();
        await waitFor('requests at the new process', () => fresh.current().sent > 50 * turn);
      }
      const [keptResult, freshResult] = [await kept.stop(), await fresh.stop()];
      expect([outcomes(keptResult), outcomes(freshResult)]).toEqual([{ 200: keptResult.sent }, { 200: freshResult.sent }]);
      // The first process serves only the stream; the newest one counts its request.
      expect(isAlive(line.first.pid)).toBe(true);
      const sum = (): number => Object.values(line.link.lastStats?.inFlight ?? {}).reduce((all, count) => all + count, 0);
      await waitFor('the stream in the stats', () => sum() === 1, { describe: () => JSON.stringify(line.link.lastStats) });
      const before = eventsOf(stream.received).length;
      await waitFor('more events', () => eventsOf(stream.received).length > before + 3);
      const events = eventsOf(stream.received);
      expect(events).toEqual(events.map((_, index) => index + 1));
      stream.destroy();
      await waitFor('all but the last to end', () => line.pids.filter(isAlive).length === 1);
      expect(replicas).toHaveLength(2);
    },
    { threads: 2 },
  );
});

test('a process that has handed over follows its successor, which counts its requests', async () => {
  await withLine(async (line, [first]) => {
    if (first === undefined) return;
    const stream = new RawClient(line.port).send('GET /stream HTTP/1.1\r\nHost: h\r\n\r\n');
    await stream.until(/data: 1/);
    const idle = new RawClient(line.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await idle.untilResponse('GET');
    await line.handOver();
    const busy = await waitFor('stats', () => Object.entries(line.link.lastStats?.inFlight ?? {}).find(([, count]) => count === 1));
    const other = busy[0] === '1' ? 2 : 1;
    // No stats came before those of the stream.
    expect(line.link.of('stats')[0]?.inFlight[busy[0]]).toBe(1);
    const requests = line.link.lastStats?.requestsTotal ?? 0;
    // The old process has one idle connection left. It gets one more request, which follows the new set. The response
    // asks the client to close.
    await line.link.setReplicas([aBalancerReplica(first.port, other)]);
    idle.received = '';
    idle.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    const answer = await idle.closed();
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(answer).toContain(`X-Svc-Replica: ${other}\r\n`);
    expect(answer.toLowerCase()).toContain('connection: close\r\n');
    await waitFor('the request to be counted', () => line.link.lastStats?.requestsTotal === requests + 1);
    expect(line.link.lastStats?.inFlight[busy[0]]).toBe(1);
    stream.destroy();
    await waitFor('the count to go', () => line.link.lastStats?.inFlight[busy[0]] === undefined);
    idle.destroy();
    expect(await line.first.exited).toBe(0);
  });
});

test('a successor counts outcomes from zero, and adds those of its predecessor', async () => {
  await withLine(async (line, replicas) => {
    const set = replicas.map(({ port }, index) => aBalancerReplica(port, index + 1, { version: index + 1, share: index === 0 ? 1 : 0 }));
    const responses = (): readonly unknown[] => [1, 2].map((id) => line.link.lastStats?.outcomes?.[id]?.responses);
    await line.link.setReplicas(set);
    const kept = new RawClient(line.port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    await kept.untilResponse('GET');
    await waitFor('the outcome', () => responses()[0] === 1);
    await line.handOver();
    // The successor serves with the shares on disk; the old process with those that its successor gets.
    expect((await fetch(line.first.url)).headers.get('x-svc-version')).toBe('1');
    await waitFor('the outcome', () => responses()[0] === 1);
    const swapped = set.map((one) => ({ ...one, share: 1 - (one.share ?? 0) }));
    await line.link.setReplicas(swapped, 'of the next reconciler');
    kept.received = '';
    kept.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    expect(await kept.closed()).toContain('X-Svc-Version: 2\r\n');
    await waitFor('the outcome of the old process', () => responses()[1] === 1);
    expect(responses()).toEqual([1, 1]);
    kept.destroy();
  });
});

test('when no successor starts, the process serves on and reports the reason', async () => {
  await withLine(async (line, [first], dir) => {
    writeFileSync(join(dir, 'balancer.json'), '{"port":');
    line.link.send('{"type":"hand-over"}');
    await waitFor('the reason', () =>
      line.first.output.includes('No other process could take over, so this one goes on: It ended with code 2.'),
    );
    await line.link.setReplicas([aBalancerReplica(first?.port ?? 0, 7)]);
    const reply = await fetch(line.first.url);
    expect([reply.status, reply.headers.get('x-svc-replica')]).toEqual([200, '7']);
  });
});

test('with fewer or more threads than before, every socket is served', async () => {
  await withLine(
    async (line, _, dir) => {
      for (const threads of [1, 3]) {
        writeFileSync(join(dir, 'balancer.json'), JSON.stringify({ ...line.first.config, port: line.port, threads }));
        await line.handOver();
        const load = openLoad({ url: `http://127.0.0.1:${line.port}/`, keepAlive: false, mostUnderWay }, 200);
        await waitFor('requests', () => load.current().sent > 100);
        const result = await load.stop();
        expect(outcomes(result)).toEqual({ 200: result.sent });
      }
    },
    { threads: 2 },
  );
});

test('ending a process during a hand-over leaves no successor behind', async () => {
  await withLine(async (line) => {
    const successor = await line.beginHandOver();
    line.first.signal('SIGTERM');
    expect(await line.first.exited).toBe(0);
    await waitFor('the successor to be gone', () => !successor.isThere());
  });
});

test('a successor whose predecessor is killed before the successor serves ends', async () => {
  await withLine(async (line) => {
    const successor = await line.beginHandOver();
    line.first.killAll();
    await line.first.exited;
    expect(successor.isThere()).toBe(true);
    successor.goOn();
    await waitFor('the sockets that it inherited to be closed', () => isRefused(line.port));
  });
});
