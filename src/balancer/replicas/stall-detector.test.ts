import { expect, test } from 'vitest';
import { StallDetector, type ReplicaActivity } from './stall-detector.ts';

/** Replicas that answer ten requests each second, each in 50 ms; what a test changes holds from then on. */
function aService(count: number) {
  const detector = new StallDetector();
  let now = 0;
  const all: { -readonly [Key in keyof ReplicaActivity]: ReplicaActivity[Key] }[] = Array.from({ length: count }, (_, slot) => ({
    slot,
    unanswered: 2,
    silentSince: 0,
    answers: 0,
    usualMs: 50,
    isEjected: false,
    isStalled: false,
  }));
  const silent = new Set<number>();
  /** Lets time pass; gives who is passed over at its end. */
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
      stalled = detector.judge(all, now);
      for (const replica of all) replica.isStalled = stalled.includes(replica.slot);
    }
    return stalled;
  };
  const change = (slot: number, changes: Partial<ReplicaActivity>): void => void Object.assign(all[slot] ?? {}, changes);
  return { pass, silent, change };
}

test('a replica that answers nothing while the others go on is passed over after a second', () => {
  const { pass, silent } = aService(4);
  expect(pass(10_000)).toEqual([]);
  silent.add(2);
  expect(pass(900)).toEqual([]);
  expect(pass(300)).toEqual([2]);
  expect(pass(60_000)).toEqual([2]);
});

test('its first byte ends that', () => {
  const { pass, silent } = aService(4);
  silent.add(2);
  expect(pass(2_000)).toEqual([2]);
  silent.delete(2);
  expect(pass(100)).toEqual([]);
});

test('slow ones are given four times as long as the others take', () => {
  const { pass, silent, change } = aService(3);
  change(0, { usualMs: 2_000 });
  silent.add(2);
  expect(pass(7_900)).toEqual([]);
  expect(pass(400)).toEqual([2]);
});

test('while nobody answers, nobody is passed over', () => {
  const { pass, silent } = aService(3);
  for (const slot of [0, 1, 2]) silent.add(slot);
  expect(pass(60_000)).toEqual([]);
});

test('one request alone may be a hard one', () => {
  const { pass, silent, change } = aService(3);
  silent.add(1);
  change(1, { unanswered: 1 });
  expect(pass(60_000)).toEqual([]);
});

test('a single replica, and more than half of several, are never passed over', () => {
  const alone = aService(1);
  alone.silent.add(0);
  expect(alone.pass(60_000)).toEqual([]);
  const five = aService(5);
  for (const slot of [0, 1, 2]) five.silent.add(slot);
  expect(five.pass(5_000)).toHaveLength(2);
  five.change(4, { isEjected: true });
  expect(five.pass(1_000)).toHaveLength(1);
});

test('one whose requests all went away is tried again after ten seconds', () => {
  const { pass, silent, change } = aService(4);
  silent.add(2);
  expect(pass(1_300)).toEqual([2]);
  change(2, { unanswered: 0 });
  expect(pass(8_000)).toEqual([2]);
  expect(pass(3_000)).toEqual([]);
});

test('one request is enough to find out that a replica which is tried again is still silent, but not once it has answered', () => {
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
