import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  activeProxies,
  backAfterMs,
  decideLabels,
  passesReadiness,
  silentAfter,
  type OwnState,
  type SeenProxy,
} from './edge-proxy-health.ts';

const aProxy = (change: Partial<SeenProxy> = {}): SeenProxy => ({
  name: 'one',
  isServing: true,
  isAlone: false,
  isGoing: false,
  failures: 0,
  answers: true,
  outForMs: 0,
  ...change,
});
const other = aProxy({ name: 'other' });

test('an edge proxy that failed three checks is removed while another one serves', () => {
  expect(decideLabels([aProxy({ failures: silentAfter - 1 }), other], 0)).toEqual([]);
  expect(decideLabels([aProxy({ failures: silentAfter }), other], 0)).toEqual([{ name: 'one', isServing: false }]);
});

test('an edge proxy that is about to end is removed once another one serves', () => {
  const going = aProxy({ isGoing: true });
  expect(decideLabels([going], 0)).toEqual([]);
  expect(decideLabels([going, aProxy({ name: 'other', isServing: false, failures: 1 })], 0)).toEqual([]);
  expect(decideLabels([going, other], 0)).toEqual([{ name: 'one', isServing: false }]);
});

test.each<[string, Partial<SeenProxy>]>([
  ['is silent too', { failures: 1 }],
  ['is removed', { isServing: false }],
  ['cannot serve', { failures: 1, answers: true }],
  ['is about to end', { isGoing: true }],
])('a silent edge proxy is not removed when the other one %s', (_, change) => {
  expect(decideLabels([aProxy({ failures: 9 }), aProxy({ name: 'other', ...change })], 0).filter(({ name }) => name === 'one')).toEqual([]);
});

test('a recovered edge proxy is added after a wait, at once when none serves', () => {
  const out = aProxy({ isServing: false });
  expect(decideLabels([out, other], 0)).toEqual([]);
  expect(decideLabels([{ ...out, outForMs: backAfterMs }, other], 0)).toEqual([{ name: 'one', isServing: true }]);
  expect(decideLabels([{ ...out, outForMs: backAfterMs, failures: 1 }, other], 0)).toEqual([]);
  expect(decideLabels([out], 0)).toEqual([{ name: 'one', isServing: true }]);
});

test('edge proxies that are not ready get the label alone only while none serves', () => {
  const waiting = aProxy({ failures: 1 });
  expect(decideLabels([waiting], backAfterMs - 1)).toEqual([]);
  expect(decideLabels([waiting], backAfterMs)).toEqual([{ name: 'one', isAlone: true }]);
  expect(decideLabels([waiting, other], backAfterMs)).toEqual([]);
  expect(decideLabels([{ ...waiting, isAlone: true }, other], 0)).toEqual([{ name: 'one', isAlone: false }]);
  expect(decideLabels([{ ...waiting, answers: false }], backAfterMs)).toEqual([]);
});

const own = (change: Partial<OwnState> = {}): OwnState => ({
  isReady: true,
  isInformed: false,
  isAlone: false,
  wasAdmitted: false,
  ...change,
});

test('without an endpoint set, only a lone or admitted edge proxy is ready', () => {
  expect(passesReadiness(own())).toBe(false);
  expect(passesReadiness(own({ isAlone: true }))).toBe(true);
  expect(passesReadiness(own({ wasAdmitted: true }))).toBe(true);
  expect(passesReadiness(own({ isInformed: true }))).toBe(true);
  expect(passesReadiness(own({ isInformed: true, isReady: false }))).toBe(false);
});

test('at least one edge proxy always serves, whatever two checkers reach', () => {
  const names = ['a', 'b', 'c'];
  fc.assert(
    fc.property(
      fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
      fc.array(fc.nat(5), { minLength: 6, maxLength: 6 }),
      fc.array(fc.nat(1), { maxLength: 12 }),
      (serving, failures, turns) => {
        const labels = names.map((_, index) => serving[index] ?? false);
        if (!labels.includes(true)) labels[0] = true;
        for (const checker of turns) {
          const seen = names.map((name, index) =>
            aProxy({ name, isServing: labels[index] ?? false, failures: failures[checker * 3 + index] ?? 0, outForMs: backAfterMs }),
          );
          for (const { name, isServing } of decideLabels(seen, 0)) if (isServing !== undefined) labels[names.indexOf(name)] = isServing;
          expect(labels).toContain(true);
          expect(activeProxies(seen).every(({ failures: count }) => count === 0)).toBe(true);
        }
      },
    ),
  );
});
