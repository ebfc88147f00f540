import { Agent, request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** What to ask for. */
export interface LoadTarget {
  /** Such as `http://127.0.0.1:30001/`. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs?: number;
  /** False: a new connection for each request of `openLoad`. */
  readonly keepAlive?: boolean;
  /** How many requests of `openLoad` may be under way at once; any number when absent. */
  readonly mostUnderWay?: number;
}

/** What became of the requests, by outcome. */
export interface LoadResult {
  readonly sent: number;
  /** Complete replies by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Requests that got not one byte back, by error code. */
  readonly failedBefore: Readonly<Record<string, number>>;
  /** Replies that broke off after their head. */
  readonly failedAfter: Readonly<Record<string, number>>;
  /** Ms from the request to the end of its reply, of complete replies, ascending. */
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

/** How many requests had which outcome: a status, an error before the first byte, or an error after it. */
export function outcomes({ statuses, failedBefore, failedAfter }: LoadResult): Readonly<Record<string, number>> {
  return { ...statuses, ...renamed(failedBefore, 'before the first byte'), ...renamed(failedAfter, 'after it') };
}

const renamed = (table: Readonly<Record<string, number>>, when: string): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(table).map(([name, count]) => [`${name} ${when}`, count] as const));

/** Requests that did not end with a complete reply of the given status. */
export function failures(result: LoadResult, status = 200): number {
  return result.sent - (result.statuses[status] ?? 0);
}

const errorName = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : error.message);

/** Sends one request and counts its outcome; always resolves. */
function send(target: LoadTarget, agent: Agent, tally: Tally): Promise<void> {
  tally.sent += 1;
  const startedAt = performance.now();
  return new Promise((done) => {
    const { method = 'GET', headers = {}, body, timeoutMs = 30_000 } = target;
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

/** Sends `requests` in all over `connections` kept-alive connections, each one request after the other. */
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

/** A load that goes on until it is stopped. */
export interface RunningLoad {
  /** Outcomes so far. */
  current(): LoadResult;
  /** Begins no more requests, waits for those under way, and gives the outcomes. */
  stop(): Promise<LoadResult>;
}

/**
 * Begins `perSecond` requests a second whatever becomes of the earlier ones, as real users do. With `mostUnderWay` it begins fewer when they do not
 * come to an end: replicas in the same process that get no processor would else be drowned by it, and lose what their listening queue does not hold.
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
