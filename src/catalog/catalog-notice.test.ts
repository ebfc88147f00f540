import { expect, test } from 'vitest';
import { aPriceTable } from '../../test/support/price-tables.ts';
import { catalogNotice } from './catalog-notice.ts';

const date = '2026-01-19';
const now = (days: number): number => Date.parse('2026-01-19T12:00:00Z') + days * 86_400_000;

test('complete figures of at most 90 days get no notice', () => {
  expect(catalogNotice(aPriceTable({ date }), now(0))).toBeUndefined();
  expect(catalogNotice(aPriceTable({ date }), now(90))).toBeUndefined();
});

test('old or incomplete figures get a notice', () => {
  const refresh = 'To refresh them: svc catalog update nimbus';
  expect(catalogNotice(aPriceTable({ date }), now(91))).toBe(`Prices of nimbus are of 2026-01-19, 91 days ago. ${refresh}`);
  expect(catalogNotice(aPriceTable({ date, partial: 'two regions' }), now(1))).toBe(
    `Prices of nimbus are not complete: two regions. ${refresh}`,
  );
  expect(catalogNotice(aPriceTable({ date, partial: 'two regions' }), now(100))).toBe(
    `Prices of nimbus are of 2026-01-19, 100 days ago, and are not complete: two regions. ${refresh}`,
  );
});
