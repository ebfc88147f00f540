import type { InstanceType, PriceTable, RegionPrice } from '../../src/catalog/price-table.ts';

/** A price in a region, without zones. */
export function aRegionPrice(change: Partial<RegionPrice> = {}): RegionPrice {
  return { region: 'us-east-1', onDemandUsd: 1, spotUsd: undefined, estimated: false, zones: [], ...change };
}

/** A machine type with 8 vCPUs and 32 GB for 1 $/h in one region. */
export function anInstanceType(change: Partial<InstanceType> = {}): InstanceType {
  const regions = [aRegionPrice()];
  return { name: 'm7i.2xlarge', cpus: 8, memoryGb: 32, accelerator: undefined, architecture: 'x86_64', regions, ...change };
}

/** A table of a cloud called `nimbus`. */
export function aPriceTable(change: Partial<PriceTable> = {}): PriceTable {
  return { cloud: 'nimbus', source: 'a test', date: '2026-01-19', partial: undefined, types: [anInstanceType()], ...change };
}
