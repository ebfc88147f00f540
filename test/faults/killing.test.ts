import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aBalancerReplica, withBalancer } from '../support/balancer.ts';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { FaultyReplica } from '../support/faulty-replica/faulty-replica.ts';
import { printFigures, spread } from '../support/figures.ts';
import { latencies, tally, Traffic, type Outcome } from '../support/traffic.ts';
import { attemptsLogged, countsAtZero, executions } from './support.ts';

const seconds = 60;
const killEveryMs = 5_000;
/** Time in which the reconciler detects a lost replica. */
const noticeMs = 400;
const working: Behaviour = { type: 'answer', afterMs: 5, spreadMs: 15 };

/** Replicas that are killed one after the other and replaced, as a reconciler replaces them. */
class ReplicaFleet {
  /** All replicas that ever ran. */
  readonly all: FaultyReplica[] = [];
  /** From each kill until the balancer had the set without the killed replica, ms of `performance.now()`. */
  readonly losses: { readonly from: number; readonly until: number }[] = [];
  #living: { readonly id: number; readonly replica: FaultyReplica }[] = [];
  #lastId = 0;
  readonly #publish: (replicas: readonly { readonly id: number; readonly port: number }[]) => Promise<void>;

  constructor(publish: (replicas: readonly { readonly id: number; readonly port: number }[]) => Promise<void>) {
    this.#publish = publish;
  }

  async add(): Promise<void> {
    const replica = await FaultyReplica.start(working);
    this.all.push(replica);
    this.#lastId += 1;
    this.#living = [...this.#living, { id: this.#lastId, replica }];
    await this.#announce();
  }

  /** Kills the oldest replica at once; the balancer gets the new endpoint set later. */
  async killOldest(): Promise<void> {
    const [oldest, ...others] = this.#living;
    const from = performance.now();
    await oldest?.replica.kill();
    await sleep(noticeMs);
    this.#living = others;
    await this.#announce();
    this.losses.push({ from, until: performance.now() });
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((replica) => replica.stop()));
  }

  #announce(): Promise<void> {
    return this.#publish(this.#living.map(({ id, replica: { port } }) => ({ id, port })));
  }
}

const answered = (method: string) => (outcome: Outcome) =>
  outcome.method === method && outcome.status === 200 && outcome.error === undefined;

test('kills under 64 open-loop clients lose no retryable request and duplicate no other', async () => {
  await withBalancer(
    [],
    async (balancer) => {
      const fleet = new ReplicaFleet((replicas) => balancer.link.setReplicas(replicas.map(({ id, port }) => aBalancerReplica(port, id))));
      const traffic = new Traffic(balancer.url);
      try {
        for (let count = 0; count < 4; count += 1) await fleet.add();
        const stop = traffic.begin(64, 4, (index) => (index % 4 === 0 ? { method: 'POST', body: `{"prompt":"${index}"}` } : {}));
        const end = performance.now() + seconds * 1_000;
        while (performance.now() < end) {
          await sleep(killEveryMs - noticeMs);
          await fleet.killOldest();
          await fleet.add();
        }
        const outcomes = await stop();
        await countsAtZero(balancer);

        const times = executions(fleet.all);
        const attempts = await attemptsLogged(balancer, outcomes.length);
        const posts = outcomes.filter(({ method }) => method === 'POST');
        const lostPosts = posts.filter((outcome) => !answered('POST')(outcome));
        printFigures('kill -9 every 5 s', {
          requests: outcomes.length,
          'attempts per request': attempts / outcomes.length,
          outcomes: JSON.stringify(tally(outcomes)),
          'POSTs that were lost without having begun': lostPosts.filter(({ id }) => !times.has(id)).length,
          'ms of all': spread(latencies(outcomes)),
        });

        // A started reply is small and is sent at once: no reply breaks off in the middle.
        expect(outcomes.filter(({ method, ...outcome }) => method === 'GET' && !answered('GET')({ method, ...outcome }))).toEqual([]);
        expect(lostPosts.filter(({ status, reason }) => status !== 502 || reason !== 'replica_lost')).toEqual([]);
        expect(posts.filter(({ id }) => (times.get(id) ?? 0) > 1)).toEqual([]);
        expect(posts.filter((outcome) => answered('POST')(outcome) && times.get(outcome.id) !== 1)).toEqual([]);
        // Each kill can only lose requests that were in flight then, and most of those are at other replicas.
        const inFlight = posts.filter(({ startedAt, endedAt }) =>
          fleet.losses.some(({ from, until }) => startedAt <= until && endedAt >= from),
        );
        expect(lostPosts.filter((post) => !inFlight.includes(post))).toEqual([]);
        expect(lostPosts.length).toBeLessThanOrEqual(inFlight.length / 2);
        expect(attempts).toBeLessThanOrEqual(outcomes.length * 1.2);
      } finally {
        traffic.close();
        await fleet.stop();
      }
    },
    { queue: { maxRequests: 1_000, maxBytes: 67_108_864, timeoutMs: 120_000, fromZero: false } },
  );
});
