import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { idOf } from '../../../test/support/stub-provider.ts';
import type { VmStatus } from './driver.ts';
import { MachineView } from './machine-view.ts';

const ref = { region: 'us-east-1', instanceId: 'i-1', user: 'ubuntu' };
const id = idOf('us-east-1/i-1');
const ended: VmStatus = { state: 'gone', reason: 'unknown' };

function aView(before: 'just made' | 'known') {
  const clock = new FakeClock();
  const view = new MachineView(clock, 'A Cloud');
  if (before === 'just made') view.wasMade(id, {});
  const inspect = async (status: VmStatus) => {
    const machine = { ...ref, status, isSpot: false, tags: {}, publicHost: undefined, privateHost: undefined };
    return (
      await view.inspect(
        () => Promise.resolve([machine]),
        new Map([[id, ref]]),
        () => false,
      )
    ).get(id)?.status;
  };
  return { clock, inspect };
}

test('a reason shown after the end of a new machine explains the end', async () => {
  const { clock, inspect } = aView('just made');
  expect(await inspect(ended)).toEqual({ state: 'booting' });
  await clock.advance(4_000);
  const refused = { ...ended, message: 'VolumeLimitExceeded', refusal: { kind: 'quota', scope: 'whole-region' } } as const;
  expect(await inspect(refused)).toEqual(refused);
});

test('a new machine that ended without a reason is gone after five seconds', async () => {
  const { clock, inspect } = aView('just made');
  await inspect(ended);
  await clock.advance(4_999);
  expect(await inspect(ended)).toEqual({ state: 'booting' });
  await clock.advance(1);
  expect(await inspect(ended)).toEqual({ state: 'gone', reason: 'unknown' });
});

test('an older machine that ended without a reason is gone at once', async () => {
  const { clock, inspect } = aView('just made');
  await clock.advance(60_000);
  expect(await inspect(ended)).toEqual({ state: 'gone', reason: 'unknown' });
  expect(await aView('known').inspect(ended)).toEqual({ state: 'gone', reason: 'unknown' });
});
