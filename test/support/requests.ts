import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request. Times are ms since the epoch. */
interface Answer {
  readonly startedAt: number;
  readonly endedAt: number;
  /** `200 replica 3`, `503 no_ready_replica`, or the code of an error. */
  readonly outcome: string;
}

/** What became of the requests that ended in a span of time. */
export interface Figures {
  /** How many had which outcome; all of status 200 as one. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** The longest time in which no request was answered with 200, ms. */
  readonly gapMs: number;
  /** The longest that a request took that was answered with 200, ms. */
  readonly slowestMs: number;
}

/** A request may take so long, ms: what waits at a replica whose host died without a word is answered by another one when the replica is given up. */
const timeoutMs = 150_000;

/** Sends `perSecond` requests to an endpoint, whatever becomes of the earlier ones, until it is stopped. */
export class Requests {
  readonly #answers: Answer[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #stopping = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #method: 'GET' | 'POST';
  readonly #running: Promise<void>;

  /** `method`: one that may not be repeated once it was sent is answered by the replica that has it, or by nobody. */
  constructor(url: string, perSecond: number, method: 'GET' | 'POST' = 'GET') {
    this.#method = method;
    this.#running = this.#run(url, 1_000 / perSecond);
  }

  /** The replicas that answered since then, by what they say. */
  repliesSince(at: number): ReadonlySet<string> {
    return new Set(this.#answers.flatMap(({ startedAt, outcome }) => (startedAt >= at && isGood(outcome) ? [outcome.slice(4)] : [])));
  }

  /** Of those that ended from then until now. */
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
    return { outcomes, gapMs: Math.max(...gaps), slowestMs: Math.max(0, ...good.map(({ startedAt, endedAt }) => endedAt - startedAt)) };
  }

  /** Begins no more; those under way get some seconds to end. */
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
      // By the clock: a busy machine sleeps too long.
      for (const due = 1 + (performance.now() - begunAt) / everyMs; begun < due; begun += 1) {
        const sent: Promise<void> = this.#send(url).finally(() => this.#underWay.delete(sent));
        this.#underWay.add(sent);
      }
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  #send(url: string): Promise<void> {
    const startedAt = Date.now();
    return new Promise((resolve) => {
      const settle = (outcome: string): void => {
        clearTimeout(timer);
        this.#answers.push({ startedAt, endedAt: Date.now(), outcome });
        resolve();
      };
      const asked = request(url, { agent: this.#agent, method: this.#method });
      const timer = setTimeout(() => asked.destroy(new Error('no answer')), timeoutMs);
      asked.on('error', (error) => settle('code' in error ? String(error.code) : error.message));
      asked.on('response', (reply) => {
        let body = '';
        reply.setEncoding('utf8').on('data', (text: string) => (body += text));
        // `close` comes in every case, and after `error`.
        reply.on('error', () => undefined);
        reply.on('close', () =>
          settle(reply.complete ? `${reply.statusCode} ${reply.statusCode === 200 ? body : codeOf(body)}` : 'broken off'),
        );
      });
      asked.end();
    });
  }
}

/** What a balancer says of an error in a word, or all that somebody else says. */
const codeOf = (body: string): string => /"code":\s*"(\w+)"/.exec(body)?.[1] ?? body;

const isGood = (outcome: string): boolean => outcome.startsWith('200 ');
