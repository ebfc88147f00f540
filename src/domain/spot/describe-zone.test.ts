import { expect, test } from 'vitest';
import { describeZone } from './describe-zone.ts';
import { recordAccepted, recordLoss, recordRefusal } from './zone-history.ts';

const minuteMs = 60_000;
const [start, later] = [1_900_000_000_000, 1_900_000_000_000 + 30 * minuteMs];

test('a zone is described by its state, its losses and what is expected of it', () => {
  expect(describeZone(undefined, start)).toMatch(/^no history; \d\.\d\d losses\/h expected$/);
  const lost = recordLoss(recordAccepted(undefined, start), start);
  expect(describeZone(lost, later)).toMatch(/^closed for 30 min, machines lost lately: 1\.0 \(older ones count less\); \d\.\d\d losses/);
  const refused = recordRefusal(recordRefusal(lost, start, false), start, false);
  expect(describeZone(refused, later)).toContain('refused 2 times in a row');
  expect(describeZone(recordAccepted(undefined, start), later)).toMatch(/^open for 13 h, none of its machines lost lately; /);
});
