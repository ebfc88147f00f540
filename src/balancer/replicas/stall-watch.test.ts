import { expect, test } from 'vitest';
import { type ReplicaActivity, StallDetector, isGivenUp, silenceOf } from './stall-watch.ts';

/** Replicas that answer ten requests each second, each in 50 ms; a test's changes stay in force. */
function aService(count: number) {
  const detector = new StallDetector(() => 0.5);
  let now = 0;
  const all: { -readonly [Key in keyof ReplicaActivity]: ReplicaActivity[Key] }[] = Array.from({ length: count }, (_, slot) => ({
    slot,
    version: 1,
    hung: 0,
    allHung: 0,
    unanswered: 2,
    silentSince: 0,
    answers: 0,
    usualMs: 50,
    isEjected: false,
    isStalled: false,
  }));
  const silent = new Set<number>();
  /** Lets time pass; returns the replicas passed over at its end. */
  const pass = (ms: number): readonly number[] => {
    let stalled: readonly number[] = [];
    for (const end = now + ms; now < end;) {
      now += 100;
      for (const replica of all) {
        if (silent.has(replica.slot)) continue;
        replica.answers += 1;
        replica.silentSince = now;
        replica.isStalled = false;
      }
      stalled = detector.judge(
        all.map((replica) => ({ ...replica })),
        now,
      );
      for (const replica of all) replica.isStalled = stalled.includes(replica.slot);
    }
    return stalled;
  };
  const change = (slot: number, changes: Partial<ReplicaActivity>): void => void Object.assign(all[slot] ?? {}, changes);
  return { pass, silent, change };
}

test('a silent replica is passed over after a second while others answer', () => {
  const { pass, silent } = aService(4);
  expect(pass(10_000)).toEqual([]);
  silent.add(2);
  expect(pass(900)).toEqual([]);
  expect(pass(300)).toEqual([2]);
  expect(pass(60_000)).toEqual([2]);
});

test('the first byte of a stalled replica ends the stall', () => {
  const { pass, silent } = aService(4);
  silent.add(2);
  expect(pass(2_000)).toEqual([2]);
  silent.delete(2);
  expect(pass(100)).toEqual([]);
});

test('slow replicas get four times as long as the others take', () => {
  const { pass, silent, change } = aService(3);
  change(0, { usualMs: 2_000 });
  silent.add(2);
  expect(pass(7_900)).toEqual([]);
  expect(pass(400)).toEqual([2]);
});

test('when no replica answers, none is passed over', () => {
  const { pass, silent } = aService(3);
  for (const slot of [0, 1, 2]) silent.add(slot);
  expect(pass(60_000)).toEqual([]);
});

test('one unanswered request alone does not mark a replica', () => {
  const { pass, silent, change } = aService(3);
  silent.add(1);
  change(1, { unanswered: 1 });
  expect(pass(60_000)).toEqual([]);
});

test('a single replica, or more than half of several, are never passed over', () => {
  const alone = aService(1);
  alone.silent.add(0);
  expect(alone.pass(60_000)).toEqual([]);
  const five = aService(5);
  for (const slot of [0, 1, 2]) five.silent.add(slot);
  expect(five.pass(5_000)).toHaveLength(2);
  five.change(4, { isEjected: true });
  expect(five.pass(1_000)).toHaveLength(1);
});

test('a stalled replica without pending requests is retried after ten seconds', () => {
  const { pass, silent, change } = aService(4);
  silent.add(2);
  expect(pass(1_300)).toEqual([2]);
  change(2, { unanswered: 0 });
  expect(pass(8_000)).toEqual([2]);
  expect(pass(3_000)).toEqual([]);
});

test('one request shows that a retried replica is still silent, until it answers', () => {
  const { pass, silent, change } = aService(4);
  silent.add(2);
  expect(pass(1_300)).toEqual([2]);
  change(2, { unanswered: 0 });
  expect(pass(11_000)).toEqual([]);
  change(2, { unanswered: 1 });
  expect(pass(2_000)).toEqual([2]);
  change(2, { unanswered: 0 });
  expect(pass(11_000)).toEqual([]);
  silent.delete(2);
  expect(pass(500)).toEqual([]);
  silent.add(2);
  change(2, { unanswered: 1 });
  expect(pass(60_000)).toEqual([]);
});

test('one request marks an ejected silent replica, in addition to the half passed over', () => {
  const { pass, silent, change } = aService(4);
  for (const slot of [0, 1]) silent.add(slot);
  change(0, { isEjected: true, unanswered: 1 });
  expect(pass(3_000)).toEqual([0, 1]);
});

/** A replica at which one request waits. */
const waiting: ReplicaActivity = {
  slot: 0,
  version: 1,
  hung: 0,
  allHung: 0,
  unanswered: 1,
  silentSince: 0,
  answers: 1,
  usualMs: 0,
  isEjected: false,
  isStalled: false,
};

test('silence is long after four times the usual time, and at least a second', () => {
  expect([silenceOf(waiting, 0, 999), silenceOf(waiting, 0, 1_000)]).toEqual(['none', 'long']);
  expect([silenceOf(waiting, 2_000, 7_999), silenceOf(waiting, 2_000, 8_000)]).toEqual(['noticeable', 'long']);
  expect(silenceOf({ ...waiting, unanswered: 0 }, 0, 60_000)).toBe('none');
});

test('requests at a hung replica fail later while no other replica serves', () => {
  expect([999, 1_000].map((now) => isGivenUp(waiting, 50, now, true))).toEqual([false, true]);
  expect([14_999, 15_000].map((now) => isGivenUp(waiting, 50, now, false))).toEqual([false, true]);
  expect(isGivenUp(waiting, 5_000, 19_999, false)).toBe(false);
});

test('two hung requests in a row mark a replica while others answer dozens', () => {
  const { pass, silent, change } = aService(3);
  pass(1_000);
  silent.add(1);
  change(1, { unanswered: 0, hung: 1, allHung: 1 });
  expect(pass(2_000)).toEqual([]);
  change(1, { hung: 2, allHung: 2 });
  expect(pass(2_000)).toEqual([1]);
});

test('hung requests mark no replica when as many hang at the others', () => {
  const { pass, silent, change } = aService(2);
  for (const slot of [0, 1]) silent.add(slot);
  for (let hung = 1; hung < 20; hung += 1) {
    for (const slot of [0, 1]) change(slot, { unanswered: 0, hung, allHung: hung, answers: 1 });
    expect(pass(1_000)).toEqual([]);
  }
});
