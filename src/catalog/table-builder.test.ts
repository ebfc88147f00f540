import { expect, test } from 'vitest';
import { TableBuilder, type PriceRow } from './table-builder.ts';

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
