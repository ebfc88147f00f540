import { expect, test } from 'vitest';
import { VersionSplit, type VersionShare } from './version-split.ts';

/** Versions 1, 2, … with these shares; all serve. */
const versionsOf = (...shares: readonly number[]): VersionShare[] =>
  shares.map((share, index) => ({ version: index + 1, share, isServing: true }));

/** The turns of `version` among some. */
function turnsOf(split: VersionSplit, version: number, from: number, count: number): number {
  let found = 0;
  for (let turn = from; turn < from + count; turn += 1) if (split.ofTurn(turn) === version) found += 1;
  return found;
}

test.for([0.01, 0.05, 0.25, 0.5, 0.9])('each window of turns has the share %d to within three requests', (share) => {
  const split = new VersionSplit(versionsOf(1 - share, share));
  for (const window of [20, 100, 1_000, 10_000]) {
    for (const from of [0, 12_345, 2 ** 31 - 500, 2 ** 32 - 500]) {
      expect(Math.abs(turnsOf(split, 2, from, window) - share * window)).toBeLessThanOrEqual(3);
    }
  }
});

test('three versions share turns; one that does not serve leaves its part to the others by their shares', () => {
  const [first, second, third] = [0.5, 0.2, 0.3].map((share, index) => ({ version: index + 1, share, isServing: index !== 0 }));
  if (first === undefined || second === undefined || third === undefined) throw new Error('no versions');
  const all = new VersionSplit([{ ...first, isServing: true }, second, third]);
  const some = new VersionSplit([first, second, third]);
  expect([1, 2, 3].map((version) => Math.round(turnsOf(all, version, 0, 10_000) / 100))).toEqual([50, 20, 30]);
  expect([1, 2, 3].map((version) => Math.round(turnsOf(some, version, 0, 10_000) / 100))).toEqual([0, 40, 60]);
});

test('a version of share 0 gets no turn and no session', () => {
  const split = new VersionSplit(versionsOf(0.4, 0, 0.6));
  expect(turnsOf(split, 2, 0, 10_000)).toBe(0);
  expect(Array.from({ length: 1_000 }, (_, index) => split.ofSession(`s${index}`))).not.toContain(2);
});

const sessions = [
  ...Array.from({ length: 10_000 }, (_, index) => `user-${index}`),
  ...Array.from({ length: 10_000 }, (_, index) => `${index}`.padStart(36, '0')),
];

test('sessions are split by the shares, whatever their names look like', () => {
  const split = new VersionSplit(versionsOf(0.75, 0.25));
  for (const part of [sessions.slice(0, 10_000), sessions.slice(10_000)]) {
    const newest = part.filter((session) => split.ofSession(session) === 2).length;
    // Four standard deviations of 10,000 independent choices.
    expect(Math.abs(newest - 2_500)).toBeLessThan(174);
  }
});

test('while the newest share grows, each session moves at most once, to the newest version', () => {
  const steps = [0, 0.05, 0.25, 0.5, 1].map((share) => new VersionSplit(versionsOf(1 - share, share)));
  for (const session of sessions.slice(0, 2_000)) {
    const versions = steps.map((split) => split.ofSession(session));
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  }
});

test('the sessions of a version that does not serve all get one other version; others stay', () => {
  const all = versionsOf(0.6, 0.3, 0.1);
  const before = new VersionSplit(all);
  const after = new VersionSplit(all.map((one) => ({ ...one, isServing: one.version !== 3 })));
  for (const session of sessions.slice(0, 2_000)) {
    const version = before.ofSession(session);
    expect(version === 3 ? [1, 2] : [version]).toContain(after.ofSession(session));
  }
});
