/** A cloud's machines and prices: one file of `catalog/`, or the result of `svc catalog update`. */
export interface PriceTable {
  /** As in `infra:`, lower case. */
  readonly cloud: string;
  /** Source of the figures; never holds a secret. */
  readonly source: string;
  /** Date of the oldest figures, `YYYY-MM-DD`. */
  readonly date: string;
  /** What the table lacks compared to its source, as a clause that follows its name; undefined when it is complete. */
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

/** US dollars per hour, without disk. undefined: not known. */
export interface ZonePrice {
  readonly zone: string;
  readonly onDemandUsd: number | undefined;
  readonly spotUsd: number | undefined;
}

/** Prices of one region; zone prices are given only where they differ. */
export interface RegionPrice {
  readonly region: string;
  readonly onDemandUsd: number | undefined;
  /** The cheapest zone's price. */
  readonly spotUsd: number | undefined;
  /** Whether the on-demand price was computed from other prices instead of read. */
  readonly estimated: boolean;
  readonly zones: readonly ZonePrice[];
}

/** All regions of a table, in alphabetical order. */
export function regionsOf(table: PriceTable): readonly string[] {
  return [...new Set(table.types.flatMap(({ regions }) => regions.map(({ region }) => region)))].toSorted();
}

/** Number of prices in a table: one per region and per zone of a type. */
export function countPrices(table: PriceTable): number {
  return table.types.reduce((sum, { regions }) => sum + regions.reduce((inner, { zones }) => inner + 1 + zones.length, 0), 0);
}
