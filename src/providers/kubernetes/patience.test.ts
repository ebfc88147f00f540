import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { assertMachineId } from '../provider.ts';
import { Patience } from './machine-states.ts';

const id: string = 'a/b/c';
assertMachineId(id);
const waiting = { state: 'booting', message: 'Unschedulable: 0/1 nodes are available.' } as const;

test('a machine that gets no node within its wait is gone', async () => {
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
    refusal: { kind: 'capacity', scope: 'zone' },
    message: 'No node within 600 s: Unschedulable: 0/1 nodes are available.',
  });
  expect(judge(undefined)).toEqual(waiting);
  expect(patience.judge(id, { status: { state: 'running' }, isWaitingForRoom: false, patienceSeconds: 600 })).toEqual({ state: 'running' });
  expect(judge(600)).toEqual(queued);
});

test('the wait counts only while the machine waits for room', async () => {
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
