import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import type { PlaceableOffer, Refusal, RefusalKind, RefusalScope } from '../placement.ts';
import { covers, forgetRefusals, nextAttemptAt, refusalOf, rememberRefusal } from './refusals.ts';

const here = aPlaceableOffer({ region: 'east', zone: 'east-a', instanceType: 'g6.xlarge', accelerator: { name: 'L4', count: 1 } });

const after = (kind: RefusalKind, scope: RefusalScope, at = 0, before: readonly Refusal[] = [], chance = 0.5): readonly Refusal[] =>
  rememberRefusal(before, here, { kind, scope, reason: 'no' }, at, chance);

const elsewhere: Readonly<Record<string, Partial<PlaceableOffer>>> = {
  'the same': {},
  'other price': { hourlyUsd: 9 },
  'other zone': { zone: 'east-b' },
  'other type': { instanceType: 'm6', accelerator: undefined },
  'without its accelerator': { accelerator: undefined },
  'as spot': { spot: true },
  'larger, other zone': { zone: 'east-b', instanceType: 'g6.4xlarge', cpus: 16 },
  'smaller, other zone': { zone: 'east-b', instanceType: 'g6.small', cpus: 2 },
  'other region': { region: 'west', zone: 'west-a' },
  'other place': { provider: 'other' },
};

test.for<readonly [RefusalKind, RefusalScope, readonly string[]]>([
  ['capacity', 'zone', ['the same', 'other price']],
  ['unsupported', 'zone', ['the same', 'other price']],
  ['capacity', 'region', ['the same', 'other price', 'other zone']],
  ['quota', 'region', ['the same', 'other price', 'other zone', 'larger, other zone']],
  ['quota', 'zone', ['the same', 'other price']],
  [
    'capacity',
    'whole-region',
    [
      'the same',
      'other price',
      'other zone',
      'other type',
      'without its accelerator',
      'as spot',
      'larger, other zone',
      'smaller, other zone',
    ],
  ],
  [
    'throttled',
    'zone',
    [
      'the same',
      'other price',
      'other zone',
      'other type',
      'without its accelerator',
      'as spot',
      'larger, other zone',
      'smaller, other zone',
    ],
  ],
  ['permission', 'place', Object.keys(elsewhere).filter((name) => name !== 'other place')],
])('a refusal of kind %s about a %s is about exactly that', ([kind, scope, expected]) => {
  const covered = Object.entries(elsewhere).filter(([, change]) => covers({ offer: here, kind, scope }, { ...here, ...change }));
  expect(covered.map(([name]) => name)).toEqual(expected);
});

test.for<readonly [RefusalKind, readonly number[]]>([
  ['capacity', [30, 60, 120, 240, 300, 300]],
  ['quota', [3_600, 3_600]],
  ['price', [300, 300]],
  ['permission', [3_600, 3_600]],
  ['throttled', [2, 4, 8, 16, 30, 30]],
  ['setup', [30, 60, 120, 240, 300, 300]],
  ['unsupported', [86_400, 86_400]],
])('%s keeps a place out for so many seconds, refusal by refusal', ([kind, seconds]) => {
  let refusals: readonly Refusal[] = [];
  let at = 0;
  for (const pause of seconds) {
    refusals = after(kind, 'zone', at, refusals);
    expect(refusals[0]?.until).toBe(at + pause * 1_000);
    expect(refusals).toHaveLength(1);
    at = refusals[0]?.until ?? 0;
  }
});

test('those who were throttled together come back at different times', () => {
  const untils = [0, 0.25, 0.75].map((chance) => after('throttled', 'place', 0, [], chance)[0]?.until);
  expect(untils).toEqual([1_000, 1_500, 2_500]);
});

test('two launches that are refused at the same time learn the same thing once', () => {
  const once = after('capacity', 'zone', 0);
  expect(after('capacity', 'zone', 1_000, once)[0]).toMatchObject({ count: 1, until: 31_000 });
});

test('a place that gave a machine is good again, whatever was said of it', () => {
  const all = after('quota', 'region', 0, after('capacity', 'zone', 0));
  expect(forgetRefusals(all, here)).toEqual([]);
  expect(forgetRefusals(all, { ...here, region: 'west' })).toBe(all);
});

test('what ended long ago is forgotten, and what ends soonest when there is too much', () => {
  const old = after('capacity', 'zone', 0);
  const fresh = rememberRefusal(old, { ...here, region: 'west' }, { kind: 'capacity', scope: 'zone', reason: '' }, 2_000_000, 0);
  expect(fresh.map(({ offer }) => offer.region)).toEqual(['west']);
  let many = after('quota', 'zone', 0);
  for (let index = 0; index < 250; index += 1) {
    const offer = { ...here, zone: `z${index}` };
    many = rememberRefusal(many, offer, { kind: 'capacity', scope: 'zone', reason: '' }, index, 0);
  }
  expect([many.length, many.some(({ kind }) => kind === 'quota'), many.at(-1)?.offer.zone]).toEqual([200, true, 'z51']);
});

test('of several refusals the one that holds longest counts, and the first offer that is free again is waited for', () => {
  const all = after('quota', 'zone', 0, after('capacity', 'zone', 0));
  expect(refusalOf(here, all, 1)?.kind).toBe('quota');
  expect(refusalOf(here, all, 3_600_000)).toBeUndefined();
  const west = { ...here, region: 'west' };
  const both = rememberRefusal(all, west, { kind: 'price', scope: 'zone', reason: '' }, 0, 0);
  expect(nextAttemptAt([here, west], both, 1)).toBe(300_000);
  expect(nextAttemptAt([here], [], 1)).toBeUndefined();
});
