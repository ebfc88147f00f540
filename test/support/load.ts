import { Agent, request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Target of a load. */
export interface LoadTarget {
  /** Such as `http://127.0.0.1:30001/`. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number;
  /** False: a new connection for each request of `openLoad`. */
  readonly keepAlive?: boolean;
  /** Maximum number of requests of `openLoad` in flight; unlimited when absent. */
  readonly mostUnderWay?: number;
}

/** Outcomes of the requests. */
export interface LoadResult {
  readonly sent: number;
  /** Complete replies by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Requests without any reply byte, by error code. */
  readonly failedBefore: Readonly<Record<string, number>>;
  /** Replies that broke off after their head. */
  readonly failedAfter: Readonly<Record<string, number>>;
  /** Durations of complete replies, ms, ascending. */
  readonly latencies: readonly number[];
}

/** Collects outcomes. */
class Tally {
  sent = 0;
  readonly statuses: Record<string, number> = {};
  readonly failedBefore: Record<string, number> = {};
  readonly failedAfter: Record<string, number> = {};
  readonly latencies: number[] = [];

  count(table: Record<string, number>, key: string): void {
    table[key] = (table[key] ?? 0) + 1;
  }

  result(): LoadResult {
    const { sent, statuses, failedBefore, failedAfter } = this;
    return { sent, statuses, failedBefore, failedAfter, latencies: this.latencies.toSorted((a, b) => a - b) };
  }
}

/** Counts requests by outcome: a status, an error before the first byte, or an error after it. */
export function outcomes({ statuses, failedBefore, failedAfter }: LoadResult): Readonly<Record<string, number>> {
  return { ...statuses, ...renamed(failedBefore, 'before the first byte'), ...renamed(failedAfter, 'after it') };
}

const renamed = (table: Readonly<Record<string, number>>, when: string): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(table).map(([name, count]) => [`${name} ${when}`, count] as const));

/** Counts requests without a complete reply of the given status. */
export function failures(result: LoadResult, status = 200): number {
  return result.sent - (result.statuses[status] ?? 0);
}

const errorName = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : error.message);

/** Sends one request and counts its outcome; always resolves. */
function send(target: LoadTarget, agent: Agent, tally: Tally): Promise<void> {
  tally.sent += 1;
  const startedAt = performance.now();
  return new Promise((done) => {
    const { method = 'GET', headers = {}, body, timeoutMs = 300_000 } = target;
    const asked = request(target.url, { method, agent, headers });
    let reply: IncomingMessage | undefined;
    let settled = false;
    const settle = (count: () => void): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      count();
      done();
    };
    const fail = (error: Error): void =>
      settle(() => tally.count(reply === undefined ? tally.failedBefore : tally.failedAfter, errorName(error)));
    const timer = setTimeout(() => asked.destroy(new Error('TIMEOUT')), timeoutMs);
    asked.on('error', fail);
    asked.on('response', (message) => {
      reply = message;
      message.on('error', fail);
      message.on('end', () => {
        settle(() => {
          tally.count(tally.statuses, String(message.statusCode));
          tally.latencies.push(performance.now() - startedAt);
        });
      });
      message.resume();
    });
    asked.end(body);
  });
}

/** Sends `requests` requests over `connections` kept-alive connections; each connection sends one at a time. */
export async function closedLoad(
  target: LoadTarget,
  amount: { readonly requests: number; readonly connections: number },
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: amount.connections });
  const tally = new Tally();
  const worker = async (): Promise<void> => {
    while (tally.sent < amount.requests) await send(target, agent, tally);
  };
  await Promise.all(Array.from({ length: amount.connections }, worker));
  agent.destroy();
  return tally.result();
}

/** A continuous load. */
export interface RunningLoad {
  /** Outcomes so far. */
  current(): LoadResult;
  /** Starts no more requests, waits for those in flight, and returns the outcomes. */
  stop(): Promise<LoadResult>;
}

/**
 * Starts `perSecond` requests a second, regardless of earlier ones, like real users. `mostUnderWay` limits the requests
 * in flight. Without it, replicas in the same process could starve and lose connections from a full listen queue.
 */
export function openLoad(target: LoadTarget, perSecond: number): RunningLoad {
  const { mostUnderWay = Number.POSITIVE_INFINITY } = target;
  const agent = new Agent({ keepAlive: target.keepAlive ?? true });
  const tally = new Tally();
  const stopping = new AbortController();
  const underWay = new Set<Promise<void>>();
  const run = async (): Promise<void> => {
    const startedAt = performance.now();
    while (!stopping.signal.aborted) {
      const due = ((performance.now() - startedAt) / 1_000) * perSecond;
      while (tally.sent < due && underWay.size < mostUnderWay && !stopping.signal.aborted) {
        const sent = send(target, agent, tally).finally(() => underWay.delete(sent));
        underWay.add(sent);
      }
      await sleep(Math.min(20, 1_000 / perSecond), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    current: () => tally.result(),
    async stop() {
      stopping.abort();
      await running;
      await Promise.all(underWay);
      agent.destroy();
      return tally.result();
    },
  };
}
