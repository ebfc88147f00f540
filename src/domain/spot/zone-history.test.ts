import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  boundHistories,
  lossesPerHour,
  mayAskZone,
  recordAccepted,
  recordLoss,
  recordRefusal,
  recordRunning,
  type ZoneHistories,
  type ZoneHistory,
} from './zone-history.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Replicas run in the zone for the whole time. */
function runFor(history: ZoneHistory | undefined, fromMs: number, lengthMs: number): ZoneHistory {
  let current = recordRunning(history, fromMs);
  for (let now = fromMs; now <= fromMs + lengthMs; now += minuteMs) current = recordRunning(current, now);
  return current;
}

test('a zone loses replicas more often the less time has passed since it changed', () => {
  const opened = recordAccepted(recordLoss(recordAccepted(undefined, 0), 0), minuteMs);
  const rates = [0, 0.5, 2, 12].map((hours) => lossesPerHour(opened, minuteMs + hours * hourMs));
  expect(rates).toEqual(rates.toSorted((a, b) => b - a));
  expect(rates[0]).toBeGreaterThan(10 * (rates[3] ?? 0));
});

test('a zone without a history is as steady as one that changed half a day ago', () => {
  expect(lossesPerHour(undefined, 0)).toBeCloseTo(lossesPerHour(recordAccepted(undefined, 0), 0));
});

test('a zone that lost more than its age predicts is riskier than others of its age', () => {
  let often = recordAccepted(undefined, 0);
  for (let loss = 1; loss <= 5; loss += 1) often = recordAccepted(recordLoss(often, loss * hourMs), loss * hourMs + minuteMs);
  const once = recordAccepted(recordLoss(undefined, 5 * hourMs), 5 * hourMs + minuteMs);
  expect(lossesPerHour(often, 6 * hourMs)).toBeGreaterThan(lossesPerHour(once, 6 * hourMs));
});

test('a zone in which replicas ran for a day without a loss is safer than an unknown one', () => {
  expect(lossesPerHour(runFor(undefined, 0, 24 * hourMs), 24 * hourMs)).toBeLessThan(lossesPerHour(undefined, 0));
});

test('time without signs is no evidence that replicas ran', () => {
  const gap = recordRunning(recordAccepted(undefined, 0), 24 * hourMs);
  expect(gap.predicted).toBeLessThan(runFor(undefined, 0, 24 * hourMs).predicted / 10);
});

test('replicas that a zone takes within a minute are one loss', () => {
  const once = recordLoss(recordAccepted(undefined, 0), hourMs);
  expect(recordLoss(once, hourMs + 1_000).losses).toBeCloseTo(1);
  expect(recordLoss(once, hourMs + 2 * minuteMs).losses).toBeCloseTo(2, 1);
});

test('a refused zone is asked again after 30 s, then after 60 s at most', () => {
  const first = recordRefusal(undefined, 0, false);
  expect(first.retryAt).toBe(30_000);
  let last = first;
  for (let count = 0; count < 20; count += 1) last = recordRefusal(last, last.retryAt, false);
  expect(last.retryAt - last.seenAt).toBe(60_000);
  expect(recordAccepted(last, last.retryAt)).toMatchObject({ isOpen: true, refusals: 0 });
});

test('a refusal where our replicas run shows a full zone, not a change', () => {
  const running = runFor(undefined, 0, hourMs);
  expect(recordRefusal(running, hourMs, true)).toMatchObject({ isOpen: true, changedAt: running.changedAt });
  expect(recordRefusal(running, hourMs, false)).toMatchObject({ isOpen: false, changedAt: hourMs });
});

test('a zone that accepts after a refusal has opened halfway between the two', () => {
  const closed = recordRefusal(recordAccepted(undefined, 0), hourMs, false);
  expect(recordAccepted(closed, 3 * hourMs).changedAt).toBe(2 * hourMs);
});

const events = fc.array(
  fc.record({ kind: fc.constantFrom('accepted', 'refused', 'full', 'lost', 'running'), now: fc.integer({ min: 0, max: 1_000 * hourMs }) }),
  { maxLength: 200 },
);

test('any events, also after clock jumps, leave a history of constant size with finite numbers', () => {
  fc.assert(
    fc.property(events, (list) => {
      let history: ZoneHistory | undefined;
      for (const { kind, now } of list) {
        if (kind === 'accepted') history = recordAccepted(history, now);
        else if (kind === 'lost') history = recordLoss(history, now);
        else if (kind === 'running') history = recordRunning(history, now);
        else history = recordRefusal(history, now, kind === 'full');
        expect(JSON.parse(JSON.stringify(history))).toEqual(history);
        expect(Object.keys(history)).toHaveLength(7);
        const rate = lossesPerHour(history, now);
        expect(rate).toBeGreaterThan(0);
        expect(rate).toBeLessThan(400);
        expect(mayAskZone(history, now) || mayAskZone(history, now + minuteMs)).toBe(true);
      }
    }),
  );
});

test('zones without a sign for two weeks are forgotten, and the oldest of more than 500', () => {
  const now = 30 * 24 * hourMs;
  const histories: ZoneHistories = Object.fromEntries(
    Array.from({ length: 600 }, (_, index) => [`zone-${index}`, recordAccepted(undefined, now - index * minuteMs)]),
  );
  const bounded = boundHistories({ ...histories, old: recordAccepted(undefined, now - 15 * 24 * hourMs) }, now);
  expect(Object.keys(bounded)).toHaveLength(500);
  expect(bounded).not.toHaveProperty('old');
  expect(bounded).toHaveProperty('zone-499');
  expect(bounded).not.toHaveProperty('zone-500');
});
