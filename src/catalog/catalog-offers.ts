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

/** Offers, cheapest first, or why there are none. `rejected` only with `explain`. */
interface CatalogOfferList {
  readonly offers: readonly CatalogOffer[];
  readonly whyNone: string | undefined;
  readonly rejected?: readonly { readonly offer: CatalogOffer; readonly why: string }[];
}

interface CatalogOfferOptions {
  readonly regions?: readonly string[] | undefined;
  readonly disks: DiskPrices;
  /** Newer than the table's, by zone. []: the region has no spot price. Undefined: the table's. */
  readonly spotPrices?: (type: string, region: string) => readonly { readonly zone: string; readonly usd: number }[] | undefined;
  /** Whether to include machines that do not satisfy the resources, with reasons. */
  readonly explain?: boolean | undefined;
}

/**
 * A table's machines for one resource alternative, with their disk, by price and then the table's order. On demand, a
 * region is one offer, with a zone only on request; on spot, each zone with a price. An unknown spot price is the
 * on-demand price, which spot prices never exceed. Machines without any price are omitted.
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

/** Computed once per region, not for each of thousands of offers. */
function diskByRegion({ diskTier, diskSizeGb }: Resources, disks: DiskPrices): (region: string) => number {
  const known = new Map<string, number>();
  return (region) => {
    const usd = known.get(region) ?? disks.hourlyUsd(region, diskTier, diskSizeGb);
    known.set(region, usd);
    return usd;
  };
}

/** Without disk. `hourlyUsd` undefined: no price is known. */
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

/** The requested zone, unless the region lacks it. A table without zones for a region cannot decide this. */
function zoneWithin({ region, zones }: RegionPrice, { region: requestedRegion, zone }: Resources): string | undefined {
  if (zone === undefined) return undefined;
  const possible = zones.length > 0 ? zones.some((one) => one.zone === zone) : requestedRegion === region || zone.startsWith(region);
  return possible ? zone : undefined;
}
