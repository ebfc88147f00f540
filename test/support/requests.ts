import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request. Times are ms since the epoch. */
interface Answer {
  readonly startedAt: number;
  readonly endedAt: number;
  /** `200 replica 3`, `503 no_ready_replica`, or the code of an error. */
  readonly outcome: string;
  readonly isRepeated: boolean;
}

/** Outcomes of the requests that ended in a time span. */
export interface Figures {
  /** Number of requests by outcome; all of status 200 as one. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** The longest time without an answer of status 200, ms. */
  readonly gapMs: number;
  /** The longest request with status 200, ms. */
  readonly slowestMs: number;
  /** Requests that were repeated because they were sent on a connection that its server was closing. */
  readonly repeated: number;
}

/**
 * Limit of a request, ms. A request at an unreachable replica is answered by another one once the replica is declared
 * lost.
 */
const timeoutMs = 150_000;

/**
 * Limit of a connection attempt, ms. An unreachable machine answers none, and each pending attempt uses a file of this
 * process.
 */
const connectTimeoutMs = 5_000;

/** Sends `perSecond` requests to an endpoint until it is stopped, regardless of earlier ones. */
export class Requests {
  readonly #answers: Answer[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #stopping = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #method: 'GET' | 'POST';
  readonly #running: Promise<void>;

  /** `method`: a non-repeatable request that was sent gets its answer from the same replica or not at all. */
  constructor(url: string, perSecond: number, method: 'GET' | 'POST' = 'GET') {
    this.#method = method;
    this.#running = this.#run(url, 1_000 / perSecond);
  }

  /** The replicas that answered since then, by their replies. */
  repliesSince(at: number): ReadonlySet<string> {
    return new Set(this.#answers.flatMap(({ startedAt, outcome }) => (startedAt >= at && isGood(outcome) ? [outcome.slice(4)] : [])));
  }

  /** Figures of requests that ended from then until now. */
  figuresSince(at: number): Figures {
    const ended = this.#answers.filter(({ endedAt }) => endedAt >= at);
    const outcomes: Record<string, number> = {};
    for (const { outcome } of ended) {
      const name = isGood(outcome) ? '200' : outcome;
      outcomes[name] = (outcomes[name] ?? 0) + 1;
    }
    const good = ended.filter(({ outcome }) => isGood(outcome));
    const times = [at, ...good.map(({ endedAt }) => endedAt), Date.now()].toSorted((a, b) => a - b);
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
    const slowestMs = Math.max(0, ...good.map(({ startedAt, endedAt }) => endedAt - startedAt));
    return { outcomes, gapMs: Math.max(...gaps), slowestMs, repeated: ended.filter(({ isRepeated }) => isRepeated).length };
  }

  /** Starts no more requests; those in flight get some seconds to end. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.race([Promise.all(this.#underWay), sleep(3_000)]);
    this.#agent.destroy();
    await Promise.all(this.#underWay);
  }

  async #run(url: string, everyMs: number): Promise<void> {
    const { signal } = this.#stopping;
    const begunAt = performance.now();
    let begun = 0;
    while (!signal.aborted) {
      // Paced by the clock, because sleeps take too long on a busy machine.
      for (const due = 1 + (performance.now() - begunAt) / everyMs; begun < due; begun += 1) {
        const sent: Promise<void> = this.#send(url).finally(() => this.#underWay.delete(sent));
        this.#underWay.add(sent);
      }
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #send(url: string): Promise<void> {
    const startedAt = Date.now();
    const first = await this.#ask(url);
    // A server may close an idle connection while a request is on its way. Clients repeat such a request if that is
    // harmless (RFC 9112, section 9.3.1).
    const isRepeated = first.outcome === 'ECONNRESET' && first.isReused && this.#method === 'GET';
    const { outcome } = isRepeated ? await this.#ask(url) : first;
    this.#answers.push({ startedAt, endedAt: Date.now(), outcome, isRepeated });
  }

  #ask(url: string): Promise<{ readonly outcome: string; readonly isReused: boolean }> {
    return new Promise((resolve) => {
      let isAnswered = false;
      const settle = (outcome: string): void => {
        clearTimeout(timer);
        clearTimeout(connecting);
        resolve({ outcome, isReused: asked.reusedSocket && !isAnswered });
      };
      const asked = request(url, { agent: this.#agent, method: this.#method });
      const timer = setTimeout(() => asked.destroy(new Error('no answer')), timeoutMs);
      let connecting: NodeJS.Timeout | undefined;
      asked.on('socket', (socket) => {
        if (!socket.connecting) return;
        connecting = setTimeout(() => asked.destroy(new Error('no connection')), connectTimeoutMs);
        socket.once('connect', () => clearTimeout(connecting));
      });
      asked.on('error', (error) => settle('code' in error ? String(error.code) : error.message));
      asked.on('response', (reply) => {
        isAnswered = true;
        let body = '';
        reply.setEncoding('utf8').on('data', (text: string) => (body += text));
        // `close` occurs in every case, and after `error`.
        reply.on('error', () => undefined);
        reply.on('close', () =>
          settle(reply.complete ? `${reply.statusCode} ${reply.statusCode === 200 ? body : codeOf(body)}` : 'broken off'),
        );
      });
      asked.end();
    });
  }
}

/** The balancer's error code, or the whole text of another program. */
const codeOf = (body: string): string => /"code":\s*"(\w+)"/.exec(body)?.[1] ?? body;

const isGood = (outcome: string): boolean => outcome.startsWith('200 ');
