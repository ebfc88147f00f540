import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aPriceTable, anInstanceType, aRegionPrice } from '../../test/support/price-tables.ts';
import { acceleratorNames } from '../domain/accelerators.ts';
import type { InstanceType, RegionPrice } from './price-table.ts';
import { formatTable, parseTable } from './table-format.ts';

const head = '# cloud: nimbus\n# date: 2026-01-19\ntype,vcpus,memory_gib,accelerator,count,accelerator_gb,arch,prices\n';

test('a line has a type with its prices by region and zone', () => {
  const text = `${head}g5.xlarge,4,16,a10g,1,24,x86_64,east=1.006|0.4 east/e1=|0.4 east/e2=1.2|0.5 west=~1.1 south=|0.3\n`;
  expect(parseTable(text, 'x.csv').types).toEqual([
    anInstanceType({
      name: 'g5.xlarge',
      cpus: 4,
      memoryGb: 16,
      accelerator: { name: 'A10G', count: 1, memoryGb: 24 },
      regions: [
        aRegionPrice({
          region: 'east',
          onDemandUsd: 1.006,
          spotUsd: 0.4,
          zones: [
            { zone: 'e1', onDemandUsd: 1.006, spotUsd: 0.4 },
            { zone: 'e2', onDemandUsd: 1.2, spotUsd: 0.5 },
          ],
        }),
        aRegionPrice({ region: 'west', onDemandUsd: 1.1, estimated: true }),
        aRegionPrice({ region: 'south', onDemandUsd: undefined, spotUsd: 0.3 }),
      ],
    }),
  ]);
});

test.for([
  ['line 4 cannot be read', `${head}t3.large,two,8,,,,x86_64,east=1\n`],
  ['line 4 cannot be read', `${head}t3.large,2,8,,,,sparc,east=1\n`],
  ['line 4 cannot be read', `${head}t3.large,2,8,L4,,,x86_64,east=1\n`],
  ['line 4 cannot be read', `${head}t3.large,2,8,,,,x86_64,east=1.1.1\n`],
  ['line 4 cannot be read', `${head}t3.large,2,8,,,,x86_64,east\n`],
  ['line 4 cannot be read', `${head}t3.large,2,8,,,,x86_64,east/e1=1\n`],
  ["line 1 has no column 'type", 'InstanceType,Price\n'],
  ['does not say of which cloud', head.replace('# cloud: nimbus\n', '')],
  ['of which date', head.replace('2026-01-19', 'yesterday')],
])('an invalid table is refused: %s', ([what, text]) => {
  expect(() => parseTable(text ?? '', 'x.csv')).toThrow(
    expect.objectContaining({ code: 'SVC_CATALOG', message: expect.stringContaining(what ?? '') }),
  );
});

const usd = fc.option(
  fc.integer({ min: 1, max: 10 ** 7 }).map((amount) => amount / 10 ** 5),
  { nil: undefined },
);
const name = fc.stringMatching(/^[a-z0-9][a-z0-9.-]{0,12}$/);
const regionPrice: fc.Arbitrary<RegionPrice> = fc
  .record({
    region: name,
    onDemandUsd: usd,
    spotUsd: usd,
    estimated: fc.boolean(),
    zones: fc.uniqueArray(fc.record({ zone: name, onDemandUsd: usd, spotUsd: usd }), { selector: ({ zone }) => zone, maxLength: 3 }),
  })
  // A zone without a price of its own has the region's.
  .map((price) => ({ ...price, zones: price.zones.map((zone) => ({ ...zone, onDemandUsd: zone.onDemandUsd ?? price.onDemandUsd })) }));
const instanceType: fc.Arbitrary<InstanceType> = fc.record({
  name,
  cpus: fc.integer({ min: 1, max: 192 }),
  memoryGb: fc.integer({ min: 1, max: 4096 }).map((gb) => gb / 2),
  accelerator: fc.option(
    fc.record({
      name: fc.constantFrom(...acceleratorNames, 'NewChip'),
      count: fc.constantFrom(0.25, 1, 8),
      memoryGb: fc.option(fc.constantFrom(24, 80), { nil: undefined }),
    }),
    { nil: undefined },
  ),
  architecture: fc.constantFrom('x86_64', 'arm64'),
  regions: fc.uniqueArray(regionPrice, { selector: ({ region }) => region, maxLength: 4 }),
});

test('a formatted table is parsed to the same table', () => {
  const partial = fc.option(fc.constant('only some regions'), { nil: undefined });
  fc.assert(
    fc.property(fc.array(instanceType, { maxLength: 5 }), partial, (types, why) => {
      const table = aPriceTable({ types, partial: why });
      expect(parseTable(formatTable(table), 'x.csv')).toEqual(table);
    }),
  );
});
