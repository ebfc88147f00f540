import { expect, test } from 'vitest';
import type { BalancerConfig } from '../../src/domain/balancer-link.ts';
import type { Behaviour } from '../support/faulty-replica/behaviour.ts';
import { Traffic } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsAtZero, executions, withFaultyService } from './support.ts';

/** The client's outcome, and how often both replicas together began the request. */
interface Expected {
  readonly status?: number;
  readonly reason?: string;
  readonly error?: string;
  readonly attempts?: number;
  readonly executed: number;
}

const ok = (attempts: number, executed: number): Expected => ({ status: 200, attempts, executed });
const busy = (status: number): Expected => ({ status, attempts: 1, executed: 1 });
const broken: Expected = { status: 200, error: 'ABORTED', attempts: 1, executed: 1 };
const lost: Expected = { status: 502, reason: 'replica_lost', executed: 1 };
const late: Expected = { status: 504, reason: 'first_byte_timeout', executed: 1 };

/** The first request goes to the faulty one of two replicas; the other answers everything. */
const table: readonly (readonly [name: string, behaviour: Behaviour, get: Expected, post: Expected])[] = [
  ['answers', { type: 'answer' }, ok(1, 1), ok(1, 1)],
  ['is slow', { type: 'answer', afterMs: 200 }, ok(1, 1), ok(1, 1)],
  ['refuses', { type: 'refuse' }, ok(2, 1), ok(2, 1)],
  ['accepts and hangs', { type: 'hang' }, late, late],
  ['resets before it answers', { type: 'reset' }, ok(2, 2), lost],
  ['closes before it answers', { type: 'close' }, ok(2, 2), lost],
  ['hangs in the middle of its answer', { type: 'half', ending: 'hang' }, broken, broken],
  ['resets in the middle of its answer', { type: 'half', ending: 'reset' }, broken, broken],
  ['sends less than it announced', { type: 'half', ending: 'close' }, broken, broken],
  ['answers 500', { type: 'status', status: 500 }, busy(500), busy(500)],
  ['answers 429 with Retry-After', { type: 'status', status: 429, retryAfterSeconds: 5 }, busy(429), busy(429)],
  ['answers 503 with Retry-After', { type: 'status', status: 503, retryAfterSeconds: 5 }, busy(503), busy(503)],
];

/**
 * The limit of the balancer that ends a request there. The others stay long: a working replica may be slow on a busy
 * machine.
 */
function limitsFor(behaviour: Behaviour): Partial<BalancerConfig> {
  if (behaviour.type === 'hang') return { firstByteTimeoutMs: 3_000 };
  return behaviour.type === 'half' && behaviour.ending === 'hang' ? { idleTimeoutMs: 1_000 } : {};
}

const rows = table.flatMap(([name, behaviour, get, post]) => [
  { name, behaviour, method: 'GET', expected: get },
  { name, behaviour, method: 'POST', expected: post },
]);

test.concurrent.each(rows)(
  '$method before a replica that $name',
  async ({ behaviour, method, expected: { executed, ...expectedOutcome } }) => {
    await withFaultyService(
      [behaviour, { type: 'answer' }],
      async (balancer, replicas) => {
        const traffic = new Traffic(balancer.url);
        const outcome = await traffic.send(method === 'POST' ? { method, body: 'hello' } : { method });
        expect(outcome).toMatchObject(expectedOutcome);
        // A stalled replica may record a request after the balancer has cancelled it.
        await waitFor('it to be noted', () => (executions(replicas).get(outcome.id) ?? 0) >= executed);
        expect(executions(replicas).get(outcome.id)).toBe(executed);
        expect((await countsAtZero(balancer)).inFlight).toEqual({ 1: 0, 2: 0 });
        traffic.close();
      },
      { policy: 'round_robin', ...limitsFor(behaviour) },
    );
  },
);

test('a replica with mostly 500 answers is ejected after five in a row', async () => {
  await withFaultyService(
    [{ type: 'status', status: 500, share: 0.8 }, { type: 'answer' }],
    async (balancer, replicas) => {
      const traffic = new Traffic(balancer.url);
      await traffic.sendMany(400, 4, () => ({}));
      const wrong = traffic.outcomes.filter(({ status }) => status !== 200).length;
      // Without ejection it would be 160; five in a row take a dozen requests on average. A slow machine needs several
      // ejections of 10 s and more.
      const tookMs = (traffic.outcomes.at(-1)?.endedAt ?? 0) - (traffic.outcomes[0]?.startedAt ?? 0);
      expect(wrong).toBeLessThan(80 * (1 + tookMs / 10_000));
      expect([...executions(replicas).values()].every((times) => times === 1)).toBe(true);
      await countsAtZero(balancer);
      traffic.close();
    },
    { policy: 'round_robin' },
  );
});
