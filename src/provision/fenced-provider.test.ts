import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anOffer } from '../../test/support/builders.ts';
import { FakeCloud } from '../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../providers/fake/index.ts';
import { assertMachineId } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';
import { seededRandom } from '../shared/random.ts';
import { fencedProvider } from './providers.ts';

/** Returns the error code of a failing call, or the call's result. */
async function codeOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error instanceof SvcError ? error.code : error;
  }
}

test('after its controller lost the lease, a fenced provider makes no calls', async () => {
  const clock = new FakeClock();
  const fake = new FakeCloud(clock, seededRandom(1), [anOffer({ provider: 'fake' })]);
  let leads = true;
  const fence = {
    check() {
      if (!leads) throw new SvcError('SVC_NOT_LEADER', 'over');
    },
  };
  const provider = fencedProvider(new FakeProvider(fake), fence);
  expect(await provider.list({}, {})).toEqual([]);
  const recorded: string[] = [];
  const recording = new Proxy(new FakeProvider(fake), {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]): unknown => {
        recorded.push(String(name));
        return Reflect.apply(value, target, args);
      };
    },
  });
  const watched = fencedProvider(recording, fence);

  leads = false;

  const id = 'm-1';
  assertMachineId(id);
  const calls = [
    () => watched.list({}, {}),
    () => watched.inspect([], {}),
    () => watched.destroy(id, {}),
    () => watched.release('k', {}),
    () => watched.check({}),
  ];
  for (const call of calls) expect(await codeOf(call)).toBe('SVC_NOT_LEADER');
  expect(recorded).toEqual([]);
});
