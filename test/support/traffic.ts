import { Agent, request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { idHeader } from './faulty-replica/behaviour.ts';
import { testRandom } from './test-random.ts';

/** The outcome of one request. Times are ms of `performance.now()`. */
export interface Outcome {
  /** Its id in the journals of faulty replicas. */
  readonly id: string;
  readonly method: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Undefined without any byte of a reply. */
  readonly status: number | undefined;
  /** `x-svc-reason` of a reply by the balancer itself. */
  readonly reason: string | undefined;
  /** The balancer's count (`x-svc-attempts`). */
  readonly attempts: number | undefined;
  /** The code of the error that ended it; undefined when the reply was complete. */
  readonly error: string | undefined;
}

/** One request. */
export interface Call {
  readonly method?: string;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
}

/** Clients of one endpoint: sends requests, each with a unique id, and records their outcomes. */
export class Traffic {
  readonly outcomes: Outcome[] = [];
  readonly #url: string;
  readonly #agent: Agent;
  #sent = 0;

  /** `connections`: maximum number of connections, for which requests wait; unlimited when absent. */
  constructor(url: string, connections = Number.POSITIVE_INFINITY) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'lifo' });
  }

  /** Number of started requests. */
  get sent(): number {
    return this.#sent;
  }

  /** Sends one; always resolves. */
  send(call: Call = {}): Promise<Outcome> {
    this.#sent += 1;
    const id = `t${this.#sent}`;
    const { method = 'GET', body, headers = {}, path = '/' } = call;
    const startedAt = performance.now();
    return new Promise((resolve) => {
      let reply: IncomingMessage | undefined;
      const settle = (error: string | undefined): void => {
        const outcome = { id, method, startedAt, endedAt: performance.now(), ...replyFieldsOf(reply), error };
        this.outcomes.push(outcome);
        resolve(outcome);
      };
      const outgoing = request(this.#url + path, { method, agent: this.#agent, headers: { ...headers, [idHeader]: id } });
      outgoing.on('response', (message) => {
        reply = message;
        // `close` occurs in every case, and after `error`.
        message.on('error', () => undefined);
        message.on('close', () => settle(message.complete ? undefined : 'ABORTED'));
        message.resume();
      });
      outgoing.on('error', (error) => {
        if (reply === undefined) settle('code' in error ? String(error.code) : error.message);
      });
      outgoing.end(body);
    });
  }

  /** Sends `requests` in all, `width` at a time. */
  async sendMany(requests: number, width: number, call: (index: number) => Call): Promise<void> {
    let begun = 0;
    const worker = async (): Promise<void> => {
      while (begun < requests) {
        begun += 1;
        await this.send(call(begun));
      }
    };
    await Promise.all(Array.from({ length: width }, worker));
  }

  /**
   * Starts `clients` that each send `perSecond` requests at random moments, regardless of earlier ones. Call the result
   * to stop.
   */
  begin(clients: number, perSecond: number, call: (index: number) => Call): () => Promise<readonly Outcome[]> {
    const stopping = new AbortController();
    const underWay = new Set<Promise<unknown>>();
    let begun = 0;
    const client = async (): Promise<void> => {
      let due = performance.now();
      while (!stopping.signal.aborted) {
        due += (-Math.log(1 - testRandom()) * 1_000) / perSecond;
        await sleep(Math.max(0, due - performance.now()), undefined, { signal: stopping.signal }).catch(() => undefined);
        if (stopping.signal.aborted) return;
        begun += 1;
        const sent: Promise<unknown> = this.send(call(begun)).finally(() => underWay.delete(sent));
        underWay.add(sent);
      }
    };
    const running = Promise.all(Array.from({ length: clients }, client));
    return async () => {
      stopping.abort();
      await running;
      await Promise.all(underWay);
      return this.outcomes;
    };
  }

  /** Closes idle connections and cuts active ones. */
  close(): void {
    this.#agent.destroy();
  }
}

function replyFieldsOf(reply: IncomingMessage | undefined): Pick<Outcome, 'status' | 'reason' | 'attempts'> {
  const text = (name: string): string | undefined => {
    const value = reply?.headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const attempts = text('x-svc-attempts');
  return { status: reply?.statusCode, reason: text('x-svc-reason'), attempts: attempts === undefined ? undefined : Number(attempts) };
}

/** Counts outcomes as text: `GET 200`, `POST 502 replica_lost`, `GET ECONNRESET`. */
export function tally(outcomes: readonly Outcome[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { method, status, reason, error } of outcomes) {
    const name = [method, status, reason, error].filter((part) => part !== undefined).join(' ');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Durations of the requests, ms, ascending. */
export function latencies(outcomes: readonly Outcome[]): readonly number[] {
  return outcomes.map(({ startedAt, endedAt }) => endedAt - startedAt).toSorted((a, b) => a - b);
}
