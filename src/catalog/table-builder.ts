import type { InstanceType, RegionPrice, ZonePrice } from './price-table.ts';

/** A machine type in one location: one line of a list from a cloud or another program. */
export interface PriceRow extends Omit<InstanceType, 'regions'> {
  readonly region: string;
  readonly zone: string | undefined;
  readonly onDemandUsd: number | undefined;
  readonly spotUsd: number | undefined;
}

interface GrowingRegion {
  onDemandUsd: number | undefined;
  spotUsd: number | undefined;
  readonly zones: { readonly zone: string; readonly onDemandUsd: number | undefined; readonly spotUsd: number | undefined }[];
}

/** Collects rows, in any order, into types with prices. The first row of a type defines its properties. */
export class TableBuilder {
  readonly #types = new Map<string, { readonly machine: Omit<InstanceType, 'regions'>; readonly regions: Map<string, GrowingRegion> }>();

  add({ region, zone, onDemandUsd, spotUsd, ...machine }: PriceRow): void {
    const type = this.#types.get(machine.name) ?? { machine, regions: new Map<string, GrowingRegion>() };
    this.#types.set(machine.name, type);
    const price: GrowingRegion = type.regions.get(region) ?? { onDemandUsd: undefined, spotUsd: undefined, zones: [] };
    type.regions.set(region, price);
    price.onDemandUsd ??= onDemandUsd;
    if (spotUsd !== undefined) price.spotUsd = Math.min(spotUsd, price.spotUsd ?? spotUsd);
    if (zone !== undefined && !price.zones.some((one) => one.zone === zone)) price.zones.push({ zone, onDemandUsd, spotUsd });
  }

  /** Types in alphabetical order, as are the regions and zones of each. */
  types(): readonly InstanceType[] {
    return [...this.#types.values()]
      .toSorted((a, b) => compare(a.machine.name, b.machine.name))
      .map(({ machine, regions }) => ({
        ...machine,
        regions: [...regions].toSorted(([a], [b]) => compare(a, b)).map(([region, price]) => finished(region, price)),
      }));
  }
}

function finished(region: string, { onDemandUsd, spotUsd, zones }: GrowingRegion): RegionPrice {
  const complete = zones.map((zone): ZonePrice => ({ ...zone, onDemandUsd: zone.onDemandUsd ?? onDemandUsd }));
  return { region, onDemandUsd, spotUsd, estimated: false, zones: complete.toSorted((a, b) => compare(a.zone, b.zone)) };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
