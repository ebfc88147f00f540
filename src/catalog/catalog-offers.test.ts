import fc from 'fast-check';
import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { aPriceTable, anInstanceType, aRegionPrice } from '../../test/support/price-tables.ts';
import type { Resources } from '../domain/task.ts';
import { catalogOffers } from './catalog-offers.ts';
import { noDiskPrices, parseDiskPrices } from './disk-prices.ts';
import type { InstanceType } from './price-table.ts';

const disks = parseDiskPrices(
  'region,tier,volume,iops,throughput_mbs,gb_month,iops_month,free_iops,mbs_month,free_mbs\n*,medium,m,,,0.73,,,,\n*,ultra,u,,,7.3,,,,\n',
  'disks.csv',
);
const l4 = { name: 'L4', count: 1, memoryGb: 24 };
const small = anInstanceType({
  name: 'small',
  cpus: 2,
  memoryGb: 4,
  regions: [aRegionPrice({ region: 'east', onDemandUsd: 0.1 }), aRegionPrice({ region: 'west', onDemandUsd: 0.2 })],
});
const large = anInstanceType({
  name: 'large',
  cpus: 8,
  memoryGb: 32,
  regions: [aRegionPrice({ region: 'east', onDemandUsd: 0.4, spotUsd: 0.15 }), aRegionPrice({ region: 'west', onDemandUsd: 0.3 })],
});
const gpu = anInstanceType({
  name: 'gpu',
  cpus: 4,
  memoryGb: 16,
  accelerator: l4,
  regions: [
    aRegionPrice({
      region: 'east',
      onDemandUsd: 1,
      spotUsd: 0.3,
      zones: [
        { zone: 'e1', onDemandUsd: 1, spotUsd: 0.5 },
        { zone: 'e2', onDemandUsd: 1, spotUsd: 0.3 },
        { zone: 'e3', onDemandUsd: 1, spotUsd: undefined },
      ],
    }),
    aRegionPrice({ region: 'west', onDemandUsd: undefined }),
  ],
});
const table = aPriceTable({ types: [small, large, gpu] });
const requestsL4: Partial<Resources> = { accelerator: { name: 'l4', count: 1 } };

const locationsAndPrices = (requested: Partial<Resources>, options: Partial<Parameters<typeof catalogOffers>[2]> = {}): readonly string[] =>
  catalogOffers(table, someResources({ diskSizeGb: 0, ...requested }), { disks: noDiskPrices, ...options }).offers.map(
    ({ instanceType, region, zone, hourlyUsd }) => `${instanceType} ${region}${zone === undefined ? '' : `/${zone}`} ${hourlyUsd}`,
  );

test('offers of all regions are sorted by price', () => {
  expect(locationsAndPrices({ cpus: { value: 2, atLeast: true } })).toEqual([
    'small east 0.1',
    'small west 0.2',
    'large west 0.3',
    'large east 0.4',
  ]);
});

test('without a requested size a machine has 8 vCPUs', () => {
  expect(locationsAndPrices({})).toEqual(['large west 0.3', 'large east 0.4']);
});

test('only the configured regions are used', () => {
  expect(locationsAndPrices({}, { regions: ['east'] })).toEqual(['large east 0.4']);
});

test('the price includes the disk and is compared with the limit', () => {
  expect(locationsAndPrices({ diskSizeGb: 100 }, { disks })).toEqual(['large west 0.4', 'large east 0.5']);
  expect(locationsAndPrices({ diskSizeGb: 100, diskTier: 'best' }, { disks })).toEqual(['large west 1.3', 'large east 1.4']);
  expect(locationsAndPrices({ diskSizeGb: 100, maxHourlyCost: 0.45 }, { disks })).toEqual(['large west 0.4']);
});

test('each zone with a spot price is a separate offer', () => {
  expect(locationsAndPrices({ ...requestsL4, useSpot: true })).toEqual(['gpu east/e2 0.3', 'gpu east/e1 0.5']);
});

test("without zones, the region's spot price applies, at most the on-demand price", () => {
  expect(locationsAndPrices({ useSpot: true })).toEqual(['large east 0.15', 'large west 0.3']);
});

const spotOfLargeInEast = (type: string, region: string) => (type === 'large' && region === 'east' ? [{ zone: 'e9', usd: 0.05 }] : []);

test("current spot prices override the table's", () => {
  expect(locationsAndPrices({ useSpot: true }, { spotPrices: spotOfLargeInEast })).toEqual(['large east/e9 0.05']);
});

test('a requested zone is used where the table has it or has no zones', () => {
  expect(locationsAndPrices({ ...requestsL4, zone: 'e1' })).toEqual(['gpu east/e1 1']);
  expect(locationsAndPrices({ ...requestsL4, zone: 'e7' })).toEqual([]);
  expect(locationsAndPrices({ region: 'west', zone: 'any' })).toEqual(['large west/any 0.3']);
  expect(locationsAndPrices({ zone: 'westa' })).toEqual(['large west/westa 0.3']);
});

test('with explain, all other machines are listed with their reasons', () => {
  const { rejected } = catalogOffers(table, someResources({ diskSizeGb: 0, ...requestsL4 }), {
    disks: noDiskPrices,
    regions: ['west'],
    explain: true,
  });
  expect(rejected?.map(({ offer, why }) => `${offer.instanceType} ${offer.region} ${why}`)).toEqual([
    'small east is in east, which is not among the regions to use',
    'small west has no accelerator, 1x l4 requested',
    'large east is in east, which is not among the regions to use',
    'large west has no accelerator, 1x l4 requested',
    'gpu east is in east, which is not among the regions to use',
    'gpu west has no known price',
  ]);
});

test('offers describe their machine', () => {
  const { offers } = catalogOffers(table, someResources({ diskSizeGb: 0, ...requestsL4 }), { disks: noDiskPrices });
  expect(offers).toEqual([
    {
      provider: 'nimbus',
      region: 'east',
      zone: undefined,
      instanceType: 'gpu',
      cpus: 4,
      memoryGb: 16,
      accelerator: l4,
      spot: false,
      hourlyUsd: 1,
      architecture: 'x86_64',
    },
  ]);
});

test.for<[string, Partial<Resources>]>([
  ["The catalogue of nimbus has no region 'eest'. Did you mean 'east'?", { region: 'eest' }],
  ["The catalogue of nimbus has no instance type 'lagre'. Did you mean 'large'?", { instanceType: 'lagre' }],
  ["The catalogue of nimbus has no accelerator 'H10000'. Did you mean 'H100'?", { accelerator: { name: 'H10000', count: 1 } }],
  ["The catalogue of nimbus has no accelerator 'H100'.", { accelerator: { name: 'H100', count: 1 } }],
  ['Machines of nimbus have 1x L4, none has 3x.', { accelerator: { name: 'L4', count: 3 } }],
  [
    'No machine of nimbus satisfies the resources: the nearest, large in west, has 8 vCPUs, 64+ requested.',
    { cpus: { value: 64, atLeast: true }, memory: { value: 32, atLeast: true } },
  ],
  [
    'No machine of nimbus satisfies the resources: the nearest, large in west, costs 0.30 $/h, more than max_hourly_cost (0.01 $/h).',
    { cpus: { value: 8, atLeast: true }, maxHourlyCost: 0.01 },
  ],
])('without an offer, the reason is: %s', ([sentence, requested]) => {
  expect(catalogOffers(table, someResources(requested), { disks: noDiskPrices }).whyNone).toBe(sentence);
});

test('an empty table has no offer and reports why', () => {
  expect(catalogOffers(aPriceTable({ types: [] }), someResources(), { disks: noDiskPrices }).whyNone).toBe(
    'The catalogue of nimbus has no machine.',
  );
});

const type: fc.Arbitrary<InstanceType> = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  cpus: fc.constantFrom(2, 4, 8, 16),
  memoryGb: fc.constantFrom(4, 16, 64),
  accelerator: fc.option(fc.constantFrom(l4, { ...l4, count: 4 }), { nil: undefined }),
  architecture: fc.constantFrom('x86_64', 'arm64'),
  regions: fc.uniqueArray(
    fc
      .record({ region: fc.constantFrom('east', 'west'), onDemandUsd: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }) })
      .map(aRegionPrice),
    { selector: ({ region }) => region },
  ),
});

test('every machine is an offer or rejected, and offers are sorted by price', () => {
  const requested = fc.record({
    cpus: fc.option(fc.record({ value: fc.constantFrom(2, 4, 8), atLeast: fc.boolean() }), { nil: undefined }),
    accelerator: fc.option(fc.constantFrom({ name: 'L4', count: 1 }, { name: 'L4', count: 4 }), { nil: undefined }),
    region: fc.option(fc.constantFrom('east', 'west'), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(type, { maxLength: 8 }), requested, (types, change) => {
      const {
        offers,
        rejected = [],
        whyNone,
      } = catalogOffers(aPriceTable({ types }), someResources(change), { disks: noDiskPrices, explain: true });
      expect(offers.length + rejected.length).toBe(types.reduce((sum, { regions }) => sum + regions.length, 0));
      expect(offers.map(({ hourlyUsd }) => hourlyUsd)).toEqual(offers.map(({ hourlyUsd }) => hourlyUsd).toSorted((a, b) => a - b));
      expect(whyNone === undefined).toBe(offers.length > 0);
    }),
  );
});
