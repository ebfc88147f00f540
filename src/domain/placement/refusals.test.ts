import { expect, test } from 'vitest';
import { aPlaceableOffer } from '../../../test/support/builders.ts';
import type { PlaceableOffer, Refusal, RefusalKind, RefusalScope } from '../placement.ts';
import {
  covers,
  endRefusals,
  forgetRefusals,
  lateRefusals,
  nextAttemptAt,
  paceLaunches,
  refusalOf,
  refusalsAfterRestart,
  rememberLateRefusal,
  rememberRefusal,
  resumeLaunches,
  trialMs,
} from './refusals.ts';

const eastOffer = aPlaceableOffer({ region: 'east', zone: 'east-a', instanceType: 'g6.xlarge', accelerator: { name: 'L4', count: 1 } });

const after = (kind: RefusalKind, scope: RefusalScope, at = 0, before: readonly Refusal[] = [], chance = 0.5): readonly Refusal[] =>
  rememberRefusal(before, eastOffer, { kind, scope, reason: 'no' }, at, chance);

const otherOffers: Readonly<Record<string, Partial<PlaceableOffer>>> = {
  'the same': {},
  'other price': { hourlyUsd: 9 },
  'other zone': { zone: 'east-b' },
  'other type': { instanceType: 'm6', accelerator: undefined },
  'without its accelerator': { accelerator: undefined },
  'as spot': { spot: true },
  'larger, other zone': { zone: 'east-b', instanceType: 'g6.4xlarge', cpus: 16 },
  'smaller, other zone': { zone: 'east-b', instanceType: 'g6.small', cpus: 2 },
  'other region': { region: 'west', zone: 'west-a' },
  'other provider': { provider: 'other' },
};

test.for<readonly [RefusalKind, RefusalScope, readonly string[]]>([
  ['capacity', 'zone', ['the same', 'other price']],
  ['unsupported', 'zone', ['the same', 'other price']],
  ['capacity', 'region', ['the same', 'other price', 'other zone']],
  ['quota', 'region', ['the same', 'other price', 'other zone', 'larger, other zone']],
  ['quota', 'zone', ['the same', 'other price']],
  ['quota', 'namespace', ['the same', 'other price', 'other zone', 'as spot', 'larger, other zone']],
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
  ['permission', 'provider', Object.keys(otherOffers).filter((name) => name !== 'other provider')],
])('a refusal of kind %s with scope %s covers exactly that scope', ([kind, scope, expected]) => {
  const covered = Object.entries(otherOffers).filter(([, change]) =>
    covers({ offer: eastOffer, kind, scope }, { ...eastOffer, ...change }),
  );
  expect(covered.map(([name]) => name)).toEqual(expected);
});

test.for<readonly [RefusalKind, RefusalScope, readonly number[]]>([
  ['capacity', 'zone', [30, 60, 120, 240, 300, 300]],
  ['quota', 'region', [60, 120, 240, 480, 900, 900]],
  ['quota', 'namespace', [5, 10, 20, 40, 60, 60]],
  ['price', 'zone', [300, 300]],
  ['permission', 'whole-region', [30, 60, 120, 240, 300, 300]],
  ['throttled', 'zone', [1.875, 3.75, 7.5, 15, 30, 30]],
  ['provider-error', 'whole-region', [3.75, 7.5, 15, 30, 45, 45]],
  ['setup', 'zone', [30, 60, 120, 240, 300, 300]],
  ['unsupported', 'zone', [300, 600, 1_200, 2_400, 3_600, 3_600]],
  ['failed-launch', 'zone', [30, 60, 120, 240, 480, 900, 900]],
])('%s with scope %s blocks offers for the expected backoff after each refusal', ([kind, scope, seconds]) => {
  let refusals: readonly Refusal[] = [];
  let at = 0;
  for (const pause of seconds) {
    refusals = after(kind, scope, at, refusals);
    expect(refusals[0]?.until).toBe(at + pause * 1_000);
    expect(refusals).toHaveLength(1);
    at = refusals[0]?.until ?? 0;
  }
});

test('a spot zone without capacity is asked again within a minute, however often it refused', () => {
  let refusals: readonly Refusal[] = [];
  let at = 0;
  const offer = { ...eastOffer, spot: true };
  for (let count = 0; count < 9; count += 1) {
    refusals = rememberRefusal(refusals, offer, { kind: 'capacity', scope: 'zone', reason: 'none' }, at, 0.5);
    const until = refusalOf(offer, refusals, at)?.until ?? 0;
    expect(until - at).toBeLessThanOrEqual(60_000);
    at = until;
  }
});

test('launches throttled together retry at different times', () => {
  const untils = [0, 0.4, 0.8].map((chance) => after('throttled', 'provider', 0, [], chance)[0]?.until);
  expect(untils).toEqual([1_250, 1_750, 2_250]);
});

test('two launches refused at the same time count as one refusal', () => {
  const once = after('capacity', 'zone', 0);
  expect(after('capacity', 'zone', 1_000, once)[0]).toMatchObject({ count: 1, until: 31_000 });
});

test('a returned machine removes the refusals of its offer', () => {
  const all = after('quota', 'region', 0, after('capacity', 'zone', 0));
  expect(forgetRefusals(all, eastOffer)).toEqual([]);
  expect(forgetRefusals(all, { ...eastOffer, region: 'west' })).toBe(all);
});

test('expired refusals are dropped, and beyond the limit those that end soonest', () => {
  const old = after('capacity', 'zone', 0);
  const fresh = rememberRefusal(old, { ...eastOffer, region: 'west' }, { kind: 'capacity', scope: 'zone', reason: '' }, 2_000_000, 0);
  expect(fresh.map(({ offer }) => offer.region)).toEqual(['west']);
  let many = after('quota', 'zone', 0);
  for (let index = 0; index < 250; index += 1) {
    const offer = { ...eastOffer, zone: `z${index}` };
    many = rememberRefusal(many, offer, { kind: 'capacity', scope: 'zone', reason: '' }, index, 0);
  }
  expect([many.length, many.some(({ kind }) => kind === 'quota'), many.at(-1)?.offer.zone]).toEqual([200, true, 'z51']);
});

test('an offer waits for its longest refusal, a search for the first free offer', () => {
  const all = after('quota', 'zone', 0, after('capacity', 'zone', 0));
  expect(refusalOf(eastOffer, all, 1)?.kind).toBe('quota');
  expect(refusalOf(eastOffer, all, 60_000)).toBeUndefined();
  const both = rememberRefusal(all, west, { kind: 'price', scope: 'zone', reason: '' }, 0, 0);
  expect(nextAttemptAt([eastOffer, west], both, 1)).toBe(60_000);
  expect(nextAttemptAt([eastOffer], [], 1)).toBeUndefined();
});

test('a refusal of a whole region counts up for any of its offers', () => {
  const other = { ...eastOffer, instanceType: 'm6', accelerator: undefined };
  const twice = rememberRefusal(
    after('permission', 'whole-region'),
    other,
    { kind: 'permission', scope: 'whole-region', reason: '' },
    30_000,
    0,
  );
  expect(twice).toMatchObject([{ count: 2, until: 90_000 }]);
});

const late = { kind: 'quota', scope: 'whole-region', reason: 'TooManyDisks' } as const;
const west = { ...eastOffer, region: 'west', zone: 'west-a' };

/** How long after `now` `offer` may not be asked for, ms. */
const heldMs = (offer: PlaceableOffer, refusals: readonly Refusal[], now: number): number =>
  (refusalOf(offer, refusals, now)?.until ?? now) - now;

/**
 * The delays, in seconds, of launches that all fail late 5 s after the request. Each launch asks for the first offer
 * that may be asked.
 */
function pausesOf(offers: readonly PlaceableOffer[], untilMs: number): readonly number[] {
  let refusals: readonly Refusal[] = [];
  const pauses: number[] = [];
  for (let now = 0; now < untilMs;) {
    const offer = offers.find((one) => heldMs(one, refusals, now) === 0);
    if (offer === undefined) throw new Error('nothing may be asked');
    refusals = forgetRefusals(paceLaunches(refusals, offer, 'a', now), offer);
    refusals = resumeLaunches(refusals, offer, 'a', now + 5_000);
    refusals = rememberLateRefusal(refusals, offer, late, now, now + 5_000);
    const pause = Math.min(...offers.map((one) => heldMs(one, refusals, now + 5_000)));
    pauses.push(pause / 1_000);
    now += 5_000 + pause;
  }
  return pauses;
}

test('a late refusal survives acceptance and grows with each failed launch', () => {
  expect(pausesOf([eastOffer], 3_000_000)).toEqual([60, 120, 240, 480, 900, 900, 900]);
  const failed = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  expect(forgetRefusals(failed, eastOffer)).toBe(failed);
  expect(forgetRefusals(failed, eastOffer, true)).toEqual([]);
});

test('a late refusal covers its own scope until launches in other scopes fail too', () => {
  const first = rememberLateRefusal([], eastOffer, { ...late, kind: 'capacity', scope: 'zone' }, 0, 0);
  const inOtherZone = { ...eastOffer, zone: 'east-b' };
  const otherProvider = { ...eastOffer, provider: 'other' };
  expect([eastOffer, inOtherZone, west].map((one) => heldMs(one, first, 0))).toEqual([30_000, 0, 0]);
  const second = rememberLateRefusal(first, inOtherZone, { ...late, kind: 'capacity', scope: 'zone' }, 1, 1);
  expect([{ ...eastOffer, zone: 'east-c' }, west].map((one) => heldMs(one, second, 1))).toEqual([10_000, 0]);
  const third = rememberLateRefusal(second, west, late, 2, 2);
  expect([{ ...eastOffer, region: 'north' }, otherProvider].map((one) => heldMs(one, third, 2))).toEqual([10_000, 0]);
  // A running machine shows that the provider as a whole works.
  const north = { ...eastOffer, region: 'north' };
  expect(forgetRefusals(third, north, true).some(({ scope }) => scope === 'provider')).toBe(false);
});

test('late failures of two regions far apart in time pause only their own region', () => {
  const inEast = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  const dayMs = 86_400_000;
  expect(rememberLateRefusal(inEast, west, late, dayMs, dayMs)).toMatchObject([{ kind: 'quota', offer: { region: 'west' } }]);
});

const isPause = ({ kind }: Refusal): boolean => kind === 'failed-launch';

test('a pause between launches grows only with failures that it covers', () => {
  const capacity = { kind: 'capacity', scope: 'zone', reason: 'none' } as const;
  const minuteMs = 60_000;
  let refusals: readonly Refusal[] = [];
  for (let now = 0; now <= 80 * minuteMs; now += 10 * minuteMs)
    refusals = rememberLateRefusal(refusals, { ...eastOffer, zone: `east-${now}` }, capacity, now, now);
  // Only the pause between launches is still remembered.
  const now = 100 * minuteMs;
  const inEast = rememberLateRefusal(refusals, { ...eastOffer, zone: 'east-z' }, capacity, now, now);
  expect(inEast.filter(isPause)).toMatchObject([{ scope: 'whole-region', count: 9 }]);
  const inWest = rememberLateRefusal(refusals, west, capacity, now, now);
  expect(inWest.filter(isPause)).toMatchObject([{ scope: 'whole-region', offer: { region: 'east' } }]);
});

test('when every region fails late, the pause between launches grows', () => {
  const regions = Array.from({ length: 30 }, (_, index) => ({ ...eastOffer, region: `r${index}` }));
  expect(pausesOf(regions, 3_000_000)).toEqual([0, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
});

test('machines accepted before the first late failure was known count as one failure', () => {
  const first = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  const second = rememberLateRefusal(first, { ...eastOffer, zone: 'east-b' }, late, 4_000, 6_000);
  expect(second).toMatchObject([{ count: 1, until: 66_000 }]);
  expect(rememberLateRefusal(second, eastOffer, late, 66_000, 67_000)).toMatchObject([{ count: 2 }]);
});

test('after a late failure, one launch at a time asks within its scope', () => {
  const failed = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  const inOtherZone = { ...eastOffer, zone: 'east-b' };
  expect(refusalOf(inOtherZone, failed, 64_999)).toMatchObject({ kind: 'quota', reason: 'TooManyDisks' });
  expect(refusalOf(inOtherZone, failed, 65_000)).toBeUndefined();
  const tried = paceLaunches(failed, inOtherZone, 'a', 65_000);
  expect(refusalOf(eastOffer, tried, 65_000)?.until).toBe(65_000 + trialMs);
  expect(refusalOf(eastOffer, resumeLaunches(tried, inOtherZone, 'a', 66_000), 66_000)).toBeUndefined();
  expect(refusalOf(west, tried, 65_000)).toBeUndefined();
});

test('a launch that ends without a machine does not shorten a late refusal', () => {
  const failed = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  const resumed = resumeLaunches(paceLaunches(failed, eastOffer, 'a', 10_000), eastOffer, 'a', 11_000);
  expect([refusalOf(eastOffer, resumed, 64_999)?.until, refusalOf(eastOffer, resumed, 65_000)]).toEqual([65_000, undefined]);
});

test("an earlier launch's late failure does not end the wait for the trial", () => {
  const failed = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  const tried = paceLaunches(failed, eastOffer, 'a', 65_000);
  expect(resumeLaunches(tried, eastOffer, 'c', 66_000)).toBe(tried);
  // A further failure of such a launch does not end the wait either. The end of the trial ends it.
  const again = rememberLateRefusal(tried, eastOffer, late, 0, 66_000);
  expect(refusalOf(eastOffer, again, 66_000)?.until).toBe(65_000 + trialMs);
  expect(refusalOf(eastOffer, resumeLaunches(again, eastOffer, 'a', 67_000), 67_000)?.until).toBe(66_000 + 60_000);
});

test('repeated restarts do not shorten late refusals', () => {
  const failed = rememberLateRefusal([], eastOffer, late, 0, 5_000);
  expect(refusalsAfterRestart(failed, 6_000)).toEqual(failed);
  expect(lateRefusals([...failed, ...after('permission', 'provider')])).toEqual(failed);
});

test('beyond the limit, late refusals are kept and others are dropped', () => {
  let many = rememberLateRefusal([], eastOffer, late, 0, 0);
  for (let index = 0; index < 250; index += 1)
    many = rememberRefusal(many, { ...eastOffer, zone: `z${index}` }, { kind: 'unsupported', scope: 'zone', reason: '' }, index, 0);
  expect([many.length, many.filter(({ isLate }) => isLate).length]).toEqual([200, 1]);
});

const isQuota = ({ kind }: Refusal): boolean => kind === 'quota';

test('a change at the provider ends its refusals after one second at the earliest', () => {
  const all = [...after('quota', 'namespace', 0), ...after('capacity', 'zone', 0)];
  expect(endRefusals(all, isQuota, 3_000).map(({ until }) => until)).toEqual([3_000, 30_000]);
  expect(endRefusals(all, isQuota, 400).map(({ until }) => until)).toEqual([1_000, 30_000]);
  const again = after('quota', 'namespace', 3_000, endRefusals(all, isQuota, 3_000));
  expect(again.find(isQuota)).toMatchObject({ count: 2, until: 13_000 });
  const over = endRefusals(all, isQuota, 60_000);
  expect(over).toBe(all);
});

test('consecutive refusals ended by changes occur at most every five seconds', () => {
  let refusals = after('quota', 'namespace', 0);
  const ends: number[] = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const at = ends.at(-1) ?? 0;
    if (attempt > 0) refusals = after('quota', 'namespace', at, refusals);
    refusals = endRefusals(refusals, isQuota, at + 100);
    ends.push(refusals.find(isQuota)?.until ?? 0);
  }
  expect(ends).toEqual([1_000, 3_000, 7_000, 12_000, 17_000]);
  // A change that comes later ends it at once.
  expect(endRefusals(after('quota', 'namespace', 17_000, refusals), isQuota, 30_000).find(isQuota)?.until).toBe(30_000);
});

test('after a restart only passing causes hold, no longer than their backoff', () => {
  const stored = (['capacity', 'quota', 'permission', 'provider-error', 'setup', 'unsupported', 'failed-launch'] as const).map(
    (kind): Refusal => ({
      offer: eastOffer,
      kind,
      scope: 'zone',
      count: 1,
      until: 3_600_000,
      reason: '',
    }),
  );
  expect(refusalsAfterRestart(stored, 0).map(({ kind, until }) => [kind, until])).toEqual([
    ['capacity', 30_000],
    ['provider-error', 5_000],
    ['failed-launch', 30_000],
  ]);
});
