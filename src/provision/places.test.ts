import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { goodCheck } from '../../test/support/places.ts';
import { aStubPlace } from '../../test/support/stub-place.ts';
import type { Provider } from '../providers/provider.ts';
import { placesFrom } from './places.ts';

function aWorld(checks: Readonly<Record<string, Provider['check']>>, allowed?: readonly string[]) {
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const open = (name: string): Promise<Provider> => {
    const check: Provider['check'] = (options) => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return checks[name]?.(options) ?? Promise.resolve(goodCheck);
    };
    return name === 'broken' ? Promise.reject(new Error('its SDK cannot be loaded')) : Promise.resolve(aStubPlace({ name, check }));
  };
  const places = placesFrom({ names: Object.keys(checks), open, clock, allowed: () => Promise.resolve(allowed) });
  const enabled = async () => (await places.providers()).map(({ name }) => name);
  const why = async () => (await places.states()).map(({ name, check }) => `${name}: ${check.summary}`);
  return { clock, counts, places, enabled, why };
}

const good: Provider['check'] = () => Promise.resolve(goodCheck);
const bad: Provider['check'] = () => Promise.resolve({ ...goodCheck, enabled: false, summary: 'no credentials' });

test('places that can be used are enabled, others say why they are not', async () => {
  const { enabled, why } = aWorld({ aws: bad, local: good });
  expect([await enabled(), await why()]).toEqual([['local'], ['aws: no credentials', 'local: ready']]);
});

test('a place whose check throws, hangs, or that cannot be opened is out and says why; the others are not held up for long', async () => {
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
    'hangs: its check did not end within 10 s',
    'broken: its SDK cannot be loaded',
    'local: ready',
  ]);
  expect(await enabled()).toEqual(['local']);
});

test('a check holds for a minute, and is made once by all who ask at the same time', async () => {
  const { clock, counts, enabled } = aWorld({ aws: good });
  await Promise.all([enabled(), enabled()]);
  await clock.advance(59_000);
  await enabled();
  expect(counts.get('aws')).toBe(1);
  await clock.advance(1_000);
  await enabled();
  expect(counts.get('aws')).toBe(2);
});

test('only allowed places take part; the others are not even asked', async () => {
  const { counts, places, enabled, why } = aWorld({ aws: good, local: good }, ['local']);
  expect([await enabled(), (await why())[0]]).toEqual([['local'], 'aws: not among allowed_clouds']);
  expect(counts.has('aws')).toBe(false);
  // A machine may outlive the permission.
  expect((await places.provider('aws')).name).toBe('aws');
});
