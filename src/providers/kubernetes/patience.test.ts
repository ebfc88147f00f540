import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { assertMachineId } from '../provider.ts';
import { Patience } from './patience.ts';

const id: string = 'a/b/c';
assertMachineId(id);
const waiting = { state: 'booting', message: 'Unschedulable: 0/1 nodes are available.' } as const;

test('a machine that no node was made for in time is gone, and one that got one waits for nothing', async () => {
  const clock = new FakeClock();
  const patience = new Patience(clock);
  const judge = (patienceSeconds: number | undefined) => patience.judge(id, { status: waiting, isWaitingForRoom: true, patienceSeconds });
  const queued = { ...waiting, isQueued: true };
  expect(judge(600)).toEqual(queued);
  await clock.advance(599_000);
  expect(judge(600)).toEqual(queued);
  await clock.advance(1_000);
  expect(judge(600)).toEqual({
    state: 'gone',
    reason: 'unknown',
    mayPass: true,
    message: 'No node within 600 s: Unschedulable: 0/1 nodes are available.',
  });
  expect(judge(undefined)).toEqual(waiting);
  expect(patience.judge(id, { status: { state: 'running' }, isWaitingForRoom: false, patienceSeconds: 600 })).toEqual({ state: 'running' });
  expect(judge(600)).toEqual(queued);
});

test('only who waits for room is counted, whatever its cluster says of it', async () => {
  const clock = new FakeClock();
  const patience = new Patience(clock);
  const gated = { state: 'booting', message: 'SchedulingGated: Scheduling is blocked due to non-empty scheduling gates.' } as const;
  const judge = (isWaitingForRoom: boolean) => patience.judge(id, { status: gated, isWaitingForRoom, patienceSeconds: 60 });
  expect(judge(true)).toEqual({ ...gated, isQueued: true });
  await clock.advance(60_000);
  expect(judge(false)).toEqual(gated);
  expect(judge(true)).toEqual({ ...gated, isQueued: true });
  await clock.advance(60_000);
  expect(judge(true)).toMatchObject({ state: 'gone' });
});
