import { expect, test } from 'vitest';
import { aPriceTable } from '../../test/support/price-tables.ts';
import { catalogNotice, TableBuilder, type PriceRow } from './price-table.ts';

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

const row = (change: Partial<PriceRow>): PriceRow => ({
  name: 'b.large',
  cpus: 2,
  memoryGb: 8,
  accelerator: undefined,
  architecture: 'x86_64',
  region: 'east',
  zone: undefined,
  onDemandUsd: 1,
  spotUsd: undefined,
  ...change,
});

test('rows of zones become sorted regions with zones and the cheapest spot price', () => {
  const builder = new TableBuilder();
  builder.add(row({ zone: 'e2', onDemandUsd: undefined, spotUsd: 0.4 }));
  builder.add(row({ zone: 'e1', spotUsd: 0.3 }));
  builder.add(row({ zone: 'e1', spotUsd: 0.1 }));
  builder.add(row({ region: 'dawn', zone: 'd1', onDemandUsd: undefined }));
  builder.add(row({ name: 'a.large' }));
  expect(builder.types().map(({ name, regions }) => ({ name, regions }))).toEqual([
    { name: 'a.large', regions: [{ region: 'east', onDemandUsd: 1, spotUsd: undefined, estimated: false, zones: [] }] },
    {
      name: 'b.large',
      regions: [
        {
          region: 'dawn',
          onDemandUsd: undefined,
          spotUsd: undefined,
          estimated: false,
          zones: [{ zone: 'd1', onDemandUsd: undefined, spotUsd: undefined }],
        },
        {
          region: 'east',
          onDemandUsd: 1,
          spotUsd: 0.1,
          estimated: false,
          zones: [
            { zone: 'e1', onDemandUsd: 1, spotUsd: 0.3 },
            { zone: 'e2', onDemandUsd: 1, spotUsd: 0.4 },
          ],
        },
      ],
    },
  ]);
});
