import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { BalancerView } from './balancer-client.ts';
import { LoadMeter } from './load-meter.ts';

const aView = (change: Partial<BalancerView> = {}): BalancerView => ({
  connected: true,
  inFlight: {},
  queued: 0,
  reports: 1,
  hellos: 1,
  outcomes: {},
  broken: {},
  ...change,
});

/** A meter and its clock, after reports of this many requests in each second. */
async function measured(perSecond: readonly number[], busyAt: (second: number) => Pick<BalancerView, 'inFlight' | 'queued'>) {
  const clock = new FakeClock();
  const meter = new LoadMeter(clock);
  for (const [second, count] of perSecond.entries()) {
    meter.arrivals(count, busyAt(second));
    await clock.advance(1_000);
  }
  return { clock, meter };
}

test('slots of ten seconds count the arrivals, the latest first, of observed times only', async () => {
  const { meter } = await measured(
    Array.from({ length: 25 }, (_, second) => second),
    () => aView(),
  );
  const detail = meter.report(aView(), false)?.detail;
  // Seconds 16 to 24 and 6 to 15; the first five were not observed for ten seconds.
  expect(detail?.recent).toEqual([180, 105]);
});

test('ten minutes are kept', async () => {
  const { meter } = await measured(
    Array.from({ length: 800 }, () => 2),
    () => aView(),
  );
  const recent = meter.report(aView(), false)?.detail?.recent ?? [];
  expect([recent.length, new Set(recent.slice(1))]).toEqual([60, new Set([20])]);
});

test('ongoing requests are those in flight and queued, as means of a minute and of six seconds', async () => {
  const { meter } = await measured(
    Array.from({ length: 60 }, () => 1),
    (second) => (second < 50 ? { inFlight: { 1: 1, 2: 1 }, queued: 0 } : { inFlight: { 1: 4 }, queued: 4 }),
  );
  const { ongoing, queued, inFlight } = meter.report(aView({ inFlight: { 1: 4 }, queued: 4 }), false)?.detail ?? {};
  expect(ongoing?.minute).toBeCloseTo((49 * 2 + 10 * 8) / 59);
  expect([ongoing?.moment, queued, inFlight]).toEqual([8, 4, { 1: 4 }]);
});

test('a report is incomplete in the first minute and without a balancer', async () => {
  const { meter, clock } = await measured([1], () => aView());
  expect(meter.report(aView(), false)?.isComplete).toBe(false);
  await clock.advance(60_000);
  expect([meter.report(aView(), false)?.isComplete, meter.report(aView({ connected: false }), false)?.isComplete]).toEqual([true, false]);
});
