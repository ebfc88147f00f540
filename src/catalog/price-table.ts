/** What a cloud offers and for how much: one file of `catalog/`, or what `svc catalog update` fetched. */
export interface PriceTable {
  /** As in `infra:`, lower case. */
  readonly cloud: string;
  /** Where the figures are from; never holds a secret. */
  readonly source: string;
  /** Of the oldest figures, `YYYY-MM-DD`. */
  readonly date: string;
  /** What is not in it, as a clause that follows the table's name; undefined when it has all that the source has. */
  readonly partial: string | undefined;
  readonly types: readonly InstanceType[];
}

/** A kind of machine with its prices everywhere. */
export interface InstanceType {
  readonly name: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `name` is canonical where the accelerator is known; `count` may be a part of one. */
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

/** Prices of one region; those of zones are given only where they differ from it. */
export interface RegionPrice {
  readonly region: string;
  readonly onDemandUsd: number | undefined;
  /** Of the cheapest zone. */
  readonly spotUsd: number | undefined;
  /** The price on demand was worked out from others rather than read. */
  readonly estimated: boolean;
  readonly zones: readonly ZonePrice[];
}

/** Every region that a table has, in alphabetical order. */
export function regionsOf(table: PriceTable): readonly string[] {
  return [...new Set(table.types.flatMap(({ regions }) => regions.map(({ region }) => region)))].toSorted();
}

/** How many prices a table has: one for each region and each zone of a type. */
export function countPrices(table: PriceTable): number {
  return table.types.reduce((sum, { regions }) => sum + regions.reduce((inner, { zones }) => inner + 1 + zones.length, 0), 0);
}
