import { whyNot, withDefaultSize, type MatchableOffer } from '../domain/offer-match.ts';
import type { Resources } from '../domain/task.ts';
import type { DiskPrices } from './disk-prices.ts';
import type { InstanceType, PriceTable, RegionPrice } from './price-table.ts';
import { whyNoOffer } from './why-no-offer.ts';

/** An offer of a price table, in the form that providers give. */
export interface CatalogOffer extends MatchableOffer {
  readonly hourlyUsd: number;
  readonly architecture: 'x86_64' | 'arm64';
}

/** Offers cheapest first, or why there are none; `rejected` with `explain` only. */
export interface CatalogOfferList {
  readonly offers: readonly CatalogOffer[];
  readonly whyNone: string | undefined;
  readonly rejected?: readonly { readonly offer: CatalogOffer; readonly why: string }[];
}

/** What decides about the offers of a table besides the resources. */
export interface CatalogOfferOptions {
  /** The only regions to use; undefined: all of the table. */
  readonly regions?: readonly string[] | undefined;
  /** What the disk that was asked for adds. */
  readonly disks: DiskPrices;
  /** Spot prices that are newer than the table's, by zone: [] when there is none there, undefined to use the table's. */
  readonly spotPrices?: (type: string, region: string) => readonly { readonly zone: string; readonly usd: number }[] | undefined;
  /** Also tell of what does not satisfy, and why. */
  readonly explain?: boolean | undefined;
}

/**
 * The machines of a table that satisfy one alternative of resources, with the price of their disk, cheapest first and equal prices in the table's
 * order. On demand a region is one offer, without a zone unless one is asked for; on spot each zone with a price is one. Spot machines whose price
 * nobody knows are reckoned at the price on demand, which they never exceed; machines without any price are no offers.
 */
export function catalogOffers(table: PriceTable, asked: Resources, options: CatalogOfferOptions): CatalogOfferList {
  const resources = withDefaultSize(asked);
  const offers: CatalogOffer[] = [];
  const rejected: { readonly offer: CatalogOffer; readonly why: string }[] = [];
  const diskUsd = diskByRegion(resources, options.disks);
  for (const type of table.types) {
    for (const price of type.regions) {
      const outside = options.regions !== undefined && !options.regions.includes(price.region);
      for (const offer of offersOf(table, type, price, resources, options)) {
        const complete = { ...offer, hourlyUsd: (offer.hourlyUsd ?? 0) + diskUsd(price.region) };
        const why = outside
          ? `is in ${price.region}, which is not among the regions to use`
          : (whyNot(resources, offer.hourlyUsd === undefined ? offer : complete) ??
            (offer.hourlyUsd === undefined ? 'has no known price' : undefined));
        if (why === undefined) offers.push(complete);
        else if (options.explain === true) rejected.push({ offer: complete, why });
      }
    }
  }
  const sorted = offers.toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  const whyNone = sorted.length > 0 ? undefined : whyNoOffer(table, resources, options);
  return { offers: sorted, whyNone, ...(options.explain === true ? { rejected } : {}) };
}

/** Asked for once in each region rather than for each of thousands of offers. */
function diskByRegion({ diskTier, diskSizeGb }: Resources, disks: DiskPrices): (region: string) => number {
  const known = new Map<string, number>();
  return (region) => {
    const usd = known.get(region) ?? disks.hourlyUsd(region, diskTier, diskSizeGb);
    known.set(region, usd);
    return usd;
  };
}

/** A machine type in a region as offers without disk; `hourlyUsd` is undefined where no price is known. */
function offersOf(
  { cloud }: PriceTable,
  type: InstanceType,
  price: RegionPrice,
  resources: Resources,
  options: CatalogOfferOptions,
): readonly (Omit<CatalogOffer, 'hourlyUsd'> & { readonly hourlyUsd: number | undefined })[] {
  const { name: instanceType, cpus, memoryGb, accelerator, architecture } = type;
  const { region, onDemandUsd } = price;
  const offer = (zone: string | undefined, hourlyUsd: number | undefined) => ({
    provider: cloud,
    region,
    zone,
    instanceType,
    cpus,
    memoryGb,
    accelerator,
    spot: resources.useSpot,
    hourlyUsd,
    architecture,
  });
  const zone = zoneWithin(price, resources);
  if (!resources.useSpot) {
    return [offer(zone, price.zones.find((one) => one.zone === zone)?.onDemandUsd ?? onDemandUsd)];
  }
  const current = options.spotPrices?.(instanceType, region);
  const zones = current ?? price.zones.flatMap((one) => (one.spotUsd === undefined ? [] : [{ zone: one.zone, usd: one.spotUsd }]));
  if (zones.length > 0) return zones.map((one) => offer(one.zone, one.usd));
  return current === undefined ? [offer(zone, price.spotUsd ?? onDemandUsd)] : [];
}

/** The zone that is asked for, when the region has it or may have it: tables that know no zones of a region cannot tell. */
function zoneWithin({ region, zones }: RegionPrice, { region: wanted, zone }: Resources): string | undefined {
  if (zone === undefined) return undefined;
  const possible = zones.length > 0 ? zones.some((one) => one.zone === zone) : wanted === region || zone.startsWith(region);
  return possible ? zone : undefined;
}
