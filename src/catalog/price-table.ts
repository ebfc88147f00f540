/** A cloud's machines and prices: a file of `catalog/`, or the result of `svc catalog update`. */
export interface PriceTable {
  /** As in `infra:`, lower case. */
  readonly cloud: string;
  /** Source of the figures; never a secret. */
  readonly source: string;
  /** Date of the oldest figures, `YYYY-MM-DD`. */
  readonly date: string;
  /** What the table lacks of its source: a clause after its name; undefined when complete. */
  readonly partial: string | undefined;
  readonly types: readonly InstanceType[];
}

/** A machine type with its prices in all regions. */
export interface InstanceType {
  readonly name: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `name` is canonical for known accelerators; `count` may be a fraction. */
  readonly accelerator: { readonly name: string; readonly count: number; readonly memoryGb: number | undefined } | undefined;
  readonly architecture: 'x86_64' | 'arm64';
  readonly regions: readonly RegionPrice[];
}

/** US dollars per hour, without disk; undefined: unknown. */
export interface ZonePrice {
  readonly zone: string;
  readonly onDemandUsd: number | undefined;
  readonly spotUsd: number | undefined;
}

/** Prices of one region. Zones only where their prices differ. */
export interface RegionPrice {
  readonly region: string;
  readonly onDemandUsd: number | undefined;
  /** The cheapest zone's. */
  readonly spotUsd: number | undefined;
  /** Whether the on-demand price was computed from other prices. */
  readonly estimated: boolean;
  readonly zones: readonly ZonePrice[];
}

/** Regions of a table, in alphabetical order. */
export function regionsOf(table: PriceTable): readonly string[] {
  return [...new Set(table.types.flatMap(({ regions }) => regions.map(({ region }) => region)))].toSorted();
}

/** Number of prices: one per region and per zone of a type. */
export function countPrices(table: PriceTable): number {
  return table.types.reduce((sum, { regions }) => sum + regions.reduce((inner, { zones }) => inner + 1 + zones.length, 0), 0);
}

const dayMs = 86_400_000;
/** On-demand prices change a few times a year. Older figures are still right for most machines. */
const staleAfterDays = 90;

/** A sentence about old or incomplete figures; else undefined. `now`: ms since the epoch. */
export function catalogNotice({ cloud, date, partial }: PriceTable, now: number): string | undefined {
  const ageDays = Math.floor((now - Date.parse(`${date}T00:00:00Z`)) / dayMs);
  const parts = [
    ...(ageDays > staleAfterDays ? [`are of ${date}, ${ageDays} days ago`] : []),
    ...(partial === undefined ? [] : [`are not complete: ${partial}`]),
  ];
  return parts.length === 0 ? undefined : `Prices of ${cloud} ${parts.join(', and ')}. To refresh them: svc catalog update ${cloud}`;
}

/** A machine type in one location: one line of a list. */
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

/** Collects rows, in any order, into types with prices. A type's first row defines its properties. */
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
