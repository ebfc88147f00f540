import { expect, test } from 'vitest';
import { someResources } from '../../test/support/builders.ts';
import { aPriceTable, anInstanceType, aRegionPrice } from '../../test/support/price-tables.ts';
import { listMachines, type ListFilter } from './list-machines.ts';

const gpus = (name: string, count: number) => ({ name, count, memoryGb: 24 });
const tables = [
  aPriceTable({
    cloud: 'aws',
    types: [
      anInstanceType({
        name: 'cpu',
        regions: [aRegionPrice({ region: 'east', onDemandUsd: 0.3 }), aRegionPrice({ region: 'west', onDemandUsd: 0.2 })],
      }),
      anInstanceType({
        name: 'one',
        accelerator: gpus('L4', 1),
        regions: [aRegionPrice({ region: 'east', onDemandUsd: 1, spotUsd: 0.5 }), aRegionPrice({ region: 'west', onDemandUsd: 0.9 })],
      }),
      anInstanceType({ name: 'four', accelerator: gpus('L4', 4), regions: [aRegionPrice({ region: 'east', onDemandUsd: 4 })] }),
      anInstanceType({ name: 'spot only', accelerator: gpus('H200', 8), regions: [aRegionPrice({ onDemandUsd: undefined, spotUsd: 20 })] }),
    ],
  }),
  aPriceTable({
    cloud: 'gcp',
    types: [
      anInstanceType({
        name: 'arm',
        accelerator: gpus('T4g', 1),
        architecture: 'arm64',
        regions: [aRegionPrice({ region: 'c', onDemandUsd: 0.5 })],
      }),
    ],
  }),
];

const listed = (filter: Partial<ListFilter>): readonly string[] =>
  listMachines(tables, {
    resources: someResources(),
    acceleratorName: undefined,
    acceleratorsOnly: false,
    allRegions: false,
    ...filter,
  }).map(({ cloud, name, region }) => `${cloud} ${name} ${region}`);

test('each type appears once, in its cheapest region, sorted by price', () => {
  expect(listed({ acceleratorsOnly: true })).toEqual(['gcp arm c', 'aws one west', 'aws four east', 'aws spot only us-east-1']);
  expect(listed({})).toEqual(['aws cpu west']);
});

test('with allRegions, each type appears in every region', () => {
  expect(listed({ acceleratorName: 'l4', allRegions: true })).toEqual(['aws one west', 'aws one east', 'aws four east']);
});

test('a name without a count matches any count; with a count only that one', () => {
  expect(listed({ acceleratorName: 'l4' })).toEqual(['aws one west', 'aws four east']);
  expect(listed({ resources: someResources({ accelerator: { name: 'l4', count: 4 } }) })).toEqual(['aws four east']);
});

test('on spot, only types with a spot price appear, sorted by it', () => {
  expect(listed({ resources: someResources({ useSpot: true }), acceleratorsOnly: true })).toEqual([
    'aws one east',
    'aws spot only us-east-1',
  ]);
});

test('location and size exclude other locations and smaller machines', () => {
  expect(listed({ resources: someResources({ cloud: 'gcp' }), acceleratorsOnly: true })).toEqual(['gcp arm c']);
  expect(listed({ resources: someResources({ region: 'east' }), acceleratorsOnly: true })).toEqual(['aws one east', 'aws four east']);
  expect(listed({ resources: someResources({ cpus: { value: 16, atLeast: true } }) })).toEqual([]);
});
