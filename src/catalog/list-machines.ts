import { isSameAccelerator } from '../domain/accelerators.ts';
import { whyNot } from '../domain/offer-match.ts';
import type { Resources } from '../domain/task.ts';
import type { InstanceType, PriceTable, RegionPrice } from './price-table.ts';

/** A machine type in one region, for `svc offers`. US dollars per hour without disk; undefined: unknown. */
export interface ListedType extends Omit<InstanceType, 'regions'> {
  readonly cloud: string;
  readonly region: string;
  readonly onDemandUsd: number | undefined;
  readonly spotUsd: number | undefined;
  readonly estimated: boolean;
}

/** Filter of the list. */
export interface ListFilter {
  readonly resources: Resources;
  /** With any number of these accelerators, instead of the number in `resources`. */
  readonly acceleratorName: string | undefined;
  readonly acceleratorsOnly: boolean;
  readonly allRegions: boolean;
}

/** Cheapest types first, by the requested price (spot or on demand). Types without that price come last. */
export function listMachines(tables: readonly PriceTable[], filter: ListFilter): readonly ListedType[] {
  const { useSpot } = filter.resources;
  return tables
    .flatMap(({ cloud, types }) =>
      types.flatMap((type) => {
        const listed = type.regions
          .filter((price) => matchesFilter(cloud, type, price, filter))
          .map((price) => listedType(cloud, type, price));
        const sorted = listed.toSorted((a, b) => priceOf(a, useSpot) - priceOf(b, useSpot));
        return filter.allRegions ? sorted : sorted.slice(0, 1);
      }),
    )
    .toSorted((a, b) => byPrice(a, b, useSpot) || a.cloud.localeCompare(b.cloud) || a.name.localeCompare(b.name));
}

function matchesFilter(cloud: string, type: InstanceType, price: RegionPrice, filter: ListFilter): boolean {
  const { resources, acceleratorName, acceleratorsOnly } = filter;
  const { accelerator } = type;
  if (acceleratorsOnly && accelerator === undefined) return false;
  if (acceleratorName !== undefined && (accelerator === undefined || !isSameAccelerator(accelerator.name, acceleratorName))) return false;
  if (resources.useSpot && price.spotUsd === undefined) return false;
  const zone = price.zones.some((one) => one.zone === resources.zone) ? resources.zone : undefined;
  const named = acceleratorName === undefined && !acceleratorsOnly ? undefined : accelerator;
  const offer = {
    ...type,
    provider: cloud,
    region: price.region,
    zone,
    instanceType: type.name,
    spot: resources.useSpot,
    hourlyUsd: undefined,
  };
  return whyNot({ ...resources, accelerator: resources.accelerator ?? named }, offer) === undefined;
}

function listedType(cloud: string, type: InstanceType, { region, onDemandUsd, spotUsd, estimated }: RegionPrice): ListedType {
  const { name, cpus, memoryGb, accelerator, architecture } = type;
  return { cloud, region, name, cpus, memoryGb, accelerator, architecture, onDemandUsd, spotUsd, estimated };
}

function priceOf({ onDemandUsd, spotUsd }: ListedType, useSpot: boolean): number {
  return (useSpot ? spotUsd : onDemandUsd) ?? Number.MAX_VALUE;
}

function byPrice(a: ListedType, b: ListedType, useSpot: boolean): number {
  return priceOf(a, useSpot) - priceOf(b, useSpot);
}
