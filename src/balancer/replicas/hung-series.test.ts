import { expect, test } from 'vitest';
import { aBalancerReplica } from '../../../test/support/balancer.ts';
import { headOf } from '../../../test/support/http1-events.ts';
import { pickFrom, replicaSets } from '../../../test/support/replica-sets.ts';
import type { LoadBalancingPolicy } from '../../domain/task.ts';
import { brokenAfterMs } from '../../domain/unanswering.ts';
import { seededRandom, type Random } from '../../shared/random.ts';
import { Board } from '../board/board.ts';
import { SharedHealthRecord } from '../board/health-record.ts';
import { createPolicy } from '../policy/policies.ts';
import { HungSeries, hasHung, type HungCounts } from './hung-series.ts';
import { PassiveHealth } from './passive-health.ts';
import type { Replica } from './replica.ts';
import { StallWatch } from './stall-watch.ts';

const head = headOf('POST / HTTP/1.1\r\nHost: a\r\n\r\n');
const boundHead = headOf('POST / HTTP/1.1\r\nHost: a\r\nx-svc-version: 2\r\n\r\n');
const stepMs = 100;

interface Conditions {
  readonly policy?: LoadBalancingPolicy;
  readonly replicas: number;
  /** Each sends its next request after a pause of `pauseMs` on average. */
  readonly clients: number;
  readonly pauseMs: number;
  /** How long a replica takes for the first byte, ms. `number`: of the request. */
  readonly takesMs: (random: Random, number: number) => number;
  /** A replica processes one request at a time, also when its client has given up. */
  readonly oneAtATime?: boolean;
  /** How long a client waits for it, ms. */
  readonly patienceMs: number;
  /** Answers no request from `hangsFromMs` on, but all of its probes. */
  readonly hung?: readonly number[];
  readonly hangsFromMs?: number;
  /** The hung replicas answer again from then on; never by default. */
  readonly hangsUntilMs?: number;
  readonly minutes: number;
  readonly seed?: number;
  /** One response of replica 1 breaks off at the start. */
  readonly breaksOff?: boolean;
  /** The last replica has a version of its own, and one more client is bound to it, whose requests take too long. */
  readonly isBound?: boolean;
}

interface Client {
  nextAt: number;
  waiting: { readonly replica: Replica; readonly sentAt: number; readonly answerAt: number } | undefined;
}

/**
 * Runs a service with the balancer's own choice of replicas, counters and stall watch in virtual time. Returns, by replica
 * id, the ms from `hangsFromMs` until its requests have failed for as long as the reconciler asks for.
 */
async function run(conditions: Conditions): Promise<ReadonlyMap<number, number>> {
  const {
    policy = 'least_load',
    replicas,
    clients,
    pauseMs,
    takesMs,
    patienceMs,
    hung = [],
    hangsFromMs = 0,
    minutes,
    seed = 1,
  } = conditions;
  const { oneAtATime = false, hangsUntilMs = Number.POSITIVE_INFINITY, breaksOff = false, isBound = false } = conditions;
  const random = seededRandom(seed);
  const slotted = Array.from({ length: replicas }, (_, slot) => ({
    ...aBalancerReplica(slot + 1, slot + 1),
    slot,
    ...(isBound && (slot === replicas - 1 ? { version: 2, share: 0 } : { version: 1, share: 1 })),
  }));
  const board = Board.create(1);
  const { clock, sets } = replicaSets(slotted, { board, policy: createPolicy(policy) });
  const watch = new StallWatch(board, random);
  const pause = (): number => -Math.log(1 - random()) * pauseMs;
  const all = Array.from({ length: clients + (isBound ? 1 : 0) }, (): Client => ({ nextAt: pause(), waiting: undefined }));
  if (breaksOff) new PassiveHealth(new SharedHealthRecord(board, 0)).recordBroken(clock.monotonic(), 'cutOff');
  const reported = new Map<number, number>();
  const freeAt = new Map<number, number>();
  let requests = 0;
  for (let now = 0; now < minutes * 60_000; now += stepMs) {
    await clock.advance(stepMs);
    for (const client of all) {
      const { waiting } = client;
      if (waiting === undefined) {
        if (client.nextAt > now) continue;
        const bound = isBound && client === all.at(-1);
        const { replica } = pickFrom(sets[0], bound ? boundHead : head, []);
        replica.recordAwaited();
        const hangs = bound || (hung.includes(replica.id) && now >= hangsFromMs && now < hangsUntilMs);
        const begins = oneAtATime ? Math.max(now, freeAt.get(replica.id) ?? 0) : now;
        const answerAt = hangs ? Number.POSITIVE_INFINITY : begins + takesMs(random, requests);
        requests += 1;
        if (!hangs) freeAt.set(replica.id, answerAt);
        client.waiting = { replica, sentAt: now, answerAt };
        continue;
      }
      const { replica, sentAt, answerAt } = waiting;
      if (answerAt <= now) {
        replica.recordFirstByte(now - sentAt);
        replica.health.recordHead();
        replica.health.recordSuccess();
      } else if (now - sentAt >= patienceMs) {
        replica.recordGivenUp(now - sentAt);
        replica.recordUnanswered();
      } else continue;
      replica.endAttempt();
      client.waiting = undefined;
      client.nextAt = now + pause();
    }
    if (now % 300 === 0) watch.check(slotted, clock.monotonic());
    if (now % 1_000 !== 0) continue;
    for (const [id, { seconds }] of Object.entries(watch.broken(slotted, clock.monotonic()) ?? {}))
      if (seconds * 1_000 >= brokenAfterMs && !reported.has(Number(id))) reported.set(Number(id), now - hangsFromMs);
  }
  return reported;
}

const quick = (random: Random): number => 20 + random() * 60;

test.each([
  ['one client, which waits 2 s', { clients: 1, pauseMs: 500, patienceMs: 2_000 }],
  ['one client, which waits 5 s', { clients: 1, pauseMs: 100, patienceMs: 5_000 }],
  ['ten clients, which wait 10 s', { clients: 10, pauseMs: 10_000, patienceMs: 10_000 }],
  ['two clients, which wait 0.6 s', { clients: 2, pauseMs: 200, patienceMs: 600 }],
] as const)('a hung replica is reported within 100 s at low traffic: %s', async (_, traffic) => {
  for (const policy of ['least_load', 'round_robin'] as const) {
    const reported = await run({ policy, replicas: 3, takesMs: quick, hung: [2], hangsFromMs: 60_000, minutes: 4, ...traffic });
    expect([...reported.keys()]).toEqual([2]);
    expect(reported.get(2)).toBeLessThanOrEqual(100_000);
  }
});

const hard =
  (share: number) =>
  (random: Random): number =>
    random() < share ? 60_000 : quick(random);
const everyThird = (random: Random, number: number): number => (number % 3 === 0 ? 60_000 : quick(random));
/** A language model that does not stream: a median of 3 s, and 1 % above 60 s. */
const generation = (random: Random): number =>
  3_000 * Math.exp(1.3 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));

test.each([
  ['a third takes longer than clients wait', { clients: 2, pauseMs: 5_000, takesMs: hard(0.33), patienceMs: 5_000 }],
  ['most take longer than clients wait', { clients: 6, pauseMs: 3_000, takesMs: hard(0.7), patienceMs: 2_000 }],
  ['each third of one client does', { clients: 1, pauseMs: 1_000, takesMs: everyThird, patienceMs: 3_000 }],
  ['clients cancel most long generations', { clients: 4, pauseMs: 5_000, takesMs: generation, patienceMs: 2_000 }],
  ['generations take turns', { clients: 6, pauseMs: 5_000, takesMs: generation, patienceMs: 20_000, oneAtATime: true }],
  ['all hang for two minutes', { clients: 5, pauseMs: 1_000, takesMs: quick, patienceMs: 5_000, hung: [1, 2, 3], hangsUntilMs: 120_000 }],
  [
    'as many hang at all, and one response broke off',
    { clients: 3, pauseMs: 1_000, takesMs: quick, patienceMs: 15_000, hung: [1, 2, 3], breaksOff: true },
  ],
  ['only requests bound to its version take longer', { clients: 4, pauseMs: 500, takesMs: quick, patienceMs: 10_000, isBound: true }],
  ['two hang for 50 s', { clients: 5, pauseMs: 1_000, takesMs: quick, patienceMs: 5_000, hung: [1, 2], hangsUntilMs: 50_000 }],
] as const)('no replica is reported where %s', async (_, traffic) => {
  for (const seed of [1, 2]) expect(await run({ replicas: 3, minutes: 8, seed, ...traffic })).toEqual(new Map());
});

test('a replica that loads its model for four minutes is not reported', async () => {
  const traffic = { replicas: 3, clients: 3, pauseMs: 500, takesMs: quick, patienceMs: 5_000 };
  expect(await run({ ...traffic, hung: [2], hangsUntilMs: 240_000, minutes: 5 })).toEqual(new Map());
});

const quiet: HungCounts = { slot: 0, version: 1, hung: 0, allHung: 0, answers: 1, unanswered: 0, isStalled: false };

test('the chance of a series follows from the share of hung requests at other replicas', () => {
  const series = new HungSeries();
  const others = { ...quiet, slot: 1 };
  series.observe([quiet, others], 0);
  series.observe(
    [
      { ...quiet, hung: 2, allHung: 2 },
      { ...others, answers: 8, allHung: 1 },
    ],
    1_000,
  );
  expect(series.chanceOf({ ...quiet, hung: 2 }, 1_000)).toBeCloseTo((2 / 10) ** 2);
  const answered = { ...quiet, hung: 1, allHung: 3, answers: 2 };
  series.observe([answered, { ...others, answers: 8, allHung: 1 }], 2_000);
  expect(series.chanceOf(answered, 2_000)).toBe(0.5);
});

test('a request hung if it was given up after four usual times and half a second', () => {
  expect([hasHung(499, 0), hasHung(500, 125), hasHung(500, 126)]).toEqual([false, true, false]);
});
