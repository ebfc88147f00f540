import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anOffer } from '../../test/support/builders.ts';
import { FakePlace } from '../providers/fake/fake-place.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import { assertMachineId } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { seededRandom } from '../shared/random.ts';
import { fencedPlace } from './fenced-place.ts';

/** With which code a call fails; what it gives when it does not. */
async function codeOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error instanceof SvcError ? error.code : error;
  }
}

test('a place and its machines hear nothing of a controller that does not lead any more', async () => {
  const clock = new FakeClock();
  const place = new FakePlace(clock, seededRandom(1), [anOffer({ provider: 'fake' })]);
  let leads = true;
  const fence = {
    check() {
      if (!leads) throw new SvcError('SVC_NOT_LEADER', 'over');
    },
  };
  const provider = fencedPlace(new FakeProvider(place), fence);
  expect(await provider.list({}, {})).toEqual([]);
  const recorded: string[] = [];
  const heard = new Proxy(new FakeProvider(place), {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]): unknown => {
        recorded.push(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
  const watched = fencedPlace(heard, fence);

  leads = false;

  const id = 'm-1';
  assertMachineId(id);
  const calls = [
    () => watched.list({}, {}),
    () => watched.inspect([], {}),
    () => watched.destroy(id, {}),
    () => watched.stop(id, {}),
    () => watched.start(id, {}),
    () => watched.release('k', {}),
    () => watched.check({}),
  ];
  for (const call of calls) expect(await codeOf(call)).toBe('SVC_NOT_LEADER');
  expect(recorded).toEqual([]);
});
