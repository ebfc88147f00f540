import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { goodCheck } from '../../test/support/providers.ts';
import { aStubProvider } from '../../test/support/stub-provider.ts';
import type { Provider } from '../providers/provider.ts';
import { providersFrom, settledStates, whyOut } from './providers.ts';

function aWorld(checks: Readonly<Record<string, Provider['check']>>, allowed?: readonly string[]) {
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const open = (name: string): Promise<Provider> => {
    const check: Provider['check'] = (options) => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return checks[name]?.(options) ?? Promise.resolve(goodCheck);
    };
    return name === 'broken' ? Promise.reject(new Error('its SDK cannot be loaded')) : Promise.resolve(aStubProvider({ name, check }));
  };
  const providers = providersFrom({ names: Object.keys(checks), open, clock, allowed: () => Promise.resolve(allowed) });
  const enabled = async () => (await providers.providers()).map(({ name }) => name);
  const why = async () => (await providers.states()).map(({ name, check }) => `${name}: ${check.summary}`);
  return { clock, counts, providers, enabled, why };
}

const good: Provider['check'] = () => Promise.resolve(goodCheck);
const bad: Provider['check'] = () => Promise.resolve({ ...goodCheck, enabled: false, summary: 'no credentials' });

test('usable providers are enabled, others give their reason', async () => {
  const { enabled, why } = aWorld({ aws: bad, local: good });
  expect([await enabled(), await why()]).toEqual([['local'], ['aws: no credentials', 'local: ready']]);
});

test('a provider that fails or hangs is unusable and delays no other', async () => {
  const { clock, enabled, why } = aWorld({
    throws: () => Promise.reject(new Error('no route to host')),
    hangs: () => new Promise(() => undefined),
    broken: good,
    local: good,
  });
  const asking = why();
  await clock.advance(10_000);
  expect(await asking).toEqual([
    'throws: no route to host',
    'hangs: answers slowly: its check did not end within 10 s; trying again',
    'broken: its SDK cannot be loaded',
    'local: ready',
  ]);
  expect(await enabled()).toEqual(['local']);
});

test('a check is valid for a minute and shared by concurrent callers', async () => {
  const { clock, counts, enabled } = aWorld({ aws: good });
  await Promise.all([enabled(), enabled()]);
  await clock.advance(59_000);
  await enabled();
  expect(counts.get('aws')).toBe(1);
  await clock.advance(1_000);
  await enabled();
  expect(counts.get('aws')).toBe(2);
});

test('only allowed providers are used and checked', async () => {
  const { counts, providers, enabled, why } = aWorld({ aws: good, local: good }, ['local']);
  expect([await enabled(), (await why())[0]]).toEqual([['local'], 'aws: not among allowed_clouds']);
  expect(counts.has('aws')).toBe(false);
  // A machine may outlive its provider's permission (`allowed_clouds`).
  expect((await providers.provider('aws')).name).toBe('aws');
});

/** A check with the given duration, which may change between calls. */
function aCheckThatTakes(clock: () => FakeClock, ms: () => number, result = goodCheck): Provider['check'] {
  return async () => {
    if (ms() > 0) await clock().sleep(ms());
    return result;
  };
}

function aSlowWorld(result = goodCheck) {
  let takesMs = 12_000;
  const world: ReturnType<typeof aWorld> = aWorld({
    aws: aCheckThatTakes(
      () => world.clock,
      () => takesMs,
      result,
    ),
    local: good,
  });
  const aws = async () => (await world.providers.states()).find(({ name }) => name === 'aws');
  return { ...world, aws, takes: (ms: number) => void (takesMs = ms) };
}

test('a slow check is reported, and the provider is usable once it ends', async () => {
  const { clock, counts, aws } = aSlowWorld();
  const asking = aws();
  await clock.advance(10_000);
  const slow = await asking;
  expect(slow?.provider).toBeUndefined();
  expect(slow && whyOut(slow)).toBe('answers slowly: its check did not end within 10 s; trying again.');
  await clock.advance(2_000);
  await slow?.late;
  expect([(await aws())?.provider?.name, counts.get('aws')]).toEqual(['aws', 1]);
});

test('a provider usable minutes ago stays usable while its next check is slow', async () => {
  const { clock, aws, takes } = aSlowWorld();
  takes(0);
  expect((await aws())?.check).toBe(goodCheck);
  takes(12_000);
  await clock.advance(300_000);
  const asking = aws();
  await clock.advance(2_000);
  expect((await asking)?.provider?.name).toBe('aws');
  await clock.advance(10_000);
  // A result from hours ago must not be used.
  await clock.advance(3_600_000);
  const again = aws();
  await clock.advance(10_000);
  expect((await again)?.late).toBeDefined();
});

test('a late result counts, even when it is bad', async () => {
  const { clock, providers, why } = aSlowWorld({ ...goodCheck, enabled: false, summary: 'the keys have expired' });
  const waits: string[] = [];
  const asking = settledStates(
    () => providers.states(),
    (text) => void waits.push(text),
  );
  await clock.advance(12_000);
  expect((await asking).map((state) => `${state.name}: ${whyOut(state)}`)[0]).toBe('aws: not enabled: the keys have expired.');
  expect(waits).toEqual(['Waiting for aws, which answers slowly: its check did not end within 10 s']);
  expect((await why())[0]).toBe('aws: the keys have expired');
});

test('a check that never ends stops after 30 s and restarts 15 s later', async () => {
  const { clock, counts, aws, takes } = aSlowWorld();
  takes(Number.MAX_SAFE_INTEGER);
  const asking = aws();
  await clock.advance(30_000);
  await asking;
  const silent = await aws();
  expect(silent && whyOut(silent)).toBe('does not answer: its check did not end within 30 s.');
  expect([silent?.late, counts.get('aws')]).toEqual([undefined, 1]);
  takes(0);
  await clock.advance(15_000);
  expect([(await aws())?.provider?.name, counts.get('aws')]).toEqual(['aws', 2]);
});

test('a provider that reports a slow part is checked again until that ends', async () => {
  let calls = 0;
  const { clock, providers } = aWorld({
    kubernetes: async () => {
      calls += 1;
      await clock.sleep(9_000);
      return calls < 2 ? { ...goodCheck, enabled: false, slow: 'no answer from east within 9 s' } : goodCheck;
    },
  });
  const asking = providers.states();
  await clock.advance(10_000);
  const [slow] = await asking;
  expect(slow && whyOut(slow)).toBe('answers slowly: no answer from east within 9 s; trying again.');
  await clock.advance(10_000);
  expect(calls).toBe(2);
  expect((await providers.states())[0]?.provider?.name).toBe('kubernetes');
});

test('waiting for a slow provider ends when it is cancelled', async () => {
  const { clock, providers, takes } = aSlowWorld();
  takes(Number.MAX_SAFE_INTEGER);
  const stop = new AbortController();
  const asking = settledStates(() => providers.states(), undefined, stop.signal);
  await clock.advance(11_000);
  stop.abort();
  await expect(asking).rejects.toThrow('aborted');
});
