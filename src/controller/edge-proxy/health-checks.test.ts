import { pino } from 'pino';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { HealthChecks } from './health-checks.ts';
import type { BalancerPod } from './pods.ts';

const pod = (name: string): BalancerPod => ({
  metadata: { name, uid: name, resourceVersion: '1', labels: { 'svc-role': 'balancer', 'svc-serving': 'true' } },
  status: { phase: 'Running', podIP: `10.0.0.${name.length}` },
});

/** Edge proxies under a health checker. Label changes take effect at once. */
function someChecks(...pods: readonly BalancerPod[]) {
  const clock = new FakeClock();
  const all = new Map(pods.map((one) => [one.metadata.name, one]));
  const silent = new Set<string>();
  const waiting = new Set<string>();
  const changes: string[] = [];
  const world = { isDenied: false };
  const merge = async (
    path: string,
    change: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } },
  ): Promise<undefined> => {
    const name = path.split('/').at(-1) ?? '';
    const before = all.get(name);
    if (world.isDenied || before === undefined) throw new Error('pods is forbidden');
    changes.push(`${name} ${JSON.stringify(change.metadata.labels)}`);
    all.set(name, { ...before, metadata: { ...before.metadata, labels: { ...before.metadata.labels, ...change.metadata.labels } } });
    return undefined;
  };
  const checks = new HealthChecks({
    api: { merge },
    namespace: 'ns',
    pods: () => [...all.values()],
    port: 30_000,
    clock,
    log: pino({ level: 'silent' }),
    check: async ({ name }) => (silent.has(name) ? 'silent' : waiting.has(name) ? 'not-ready' : 'ready'),
  });
  const ticks = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count; tick += 1) {
      await checks.tick();
      await clock.advance(250);
    }
  };
  return { all, silent, waiting, changes, world, ticks };
}

test('a silent edge proxy leaves after three checks and returns two seconds after answering', async () => {
  const { silent, changes, ticks } = someChecks(pod('a'), pod('bb'));
  await ticks(4);
  silent.add('bb');
  await ticks(2);
  expect(changes).toEqual([]);
  await ticks(1);
  expect(changes).toEqual(['bb {"svc-serving":"false"}']);
  silent.delete('bb');
  await ticks(20);
  expect(changes).toEqual(['bb {"svc-serving":"false"}', 'bb {"svc-serving":"true"}']);
});

test('a refused label change is retried at the next check', async () => {
  const { silent, changes, world, ticks } = someChecks(pod('a'), pod('bb'));
  await ticks(1);
  silent.add('bb');
  world.isDenied = true;
  await ticks(5);
  world.isDenied = false;
  await ticks(1);
  expect(changes).toEqual(['bb {"svc-serving":"false"}']);
});

test('an edge proxy without endpoint sets is labelled alone until another one serves', async () => {
  const { all, waiting, changes, ticks } = someChecks(pod('a'));
  waiting.add('a');
  await ticks(20);
  expect(changes).toEqual(['a {"svc-alone":"true"}']);
  all.set('bb', pod('bb'));
  await ticks(2);
  expect(changes).toEqual(['a {"svc-alone":"true"}', 'a {"svc-serving":"false","svc-alone":"false"}']);
});

test('a pod with ended containers leaves the Service like a silent one', async () => {
  const { all, changes, ticks } = someChecks(pod('a'), pod('bb'));
  await ticks(1);
  all.set('bb', { ...pod('bb'), status: { phase: 'Failed', podIP: '10.0.0.2' } });
  await ticks(3);
  expect(changes).toEqual(['bb {"svc-serving":"false"}']);
});

test('an edge proxy joins when it can serve; a terminating one leaves next check', async () => {
  const fresh = pod('bb');
  const { all, waiting, changes, ticks } = someChecks(pod('a'));
  waiting.add('bb');
  all.set('bb', { ...fresh, metadata: { ...fresh.metadata, labels: { 'svc-role': 'balancer', 'svc-serving': 'false' } } });
  await ticks(20);
  expect(changes).toEqual([]);
  waiting.delete('bb');
  await ticks(1);
  expect(changes).toEqual(['bb {"svc-serving":"true"}']);
  const old = pod('a');
  all.set('a', { ...old, metadata: { ...old.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  await ticks(1);
  expect(changes.slice(1)).toEqual(['a {"svc-serving":"false"}']);
});
