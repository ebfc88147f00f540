import { catalogOffers, type CatalogOffer } from '../../catalog/catalog-offers.ts';
import { PriceTables } from '../../catalog/price-tables.ts';
import type { Resources, Task } from '../../domain/task.ts';
import { regionOf, zoneNameOf, type SpotTrace } from '../../simulate/spot-fleet.ts';

/** What replicas cost in the zones of a spot trace. */
export interface SpotPrices {
  /** Of a spot replica in each zone, relative to one on demand. */
  readonly spotPrices: readonly number[];
  /** Of a replica on demand, US dollars per hour; undefined when it is not known. */
  readonly hourlyUsd: number | undefined;
  /** Where the prices come from: a sentence. */
  readonly fact: string;
}

interface GivenPrices {
  /** Of the command line: for every zone. */
  readonly share: number | undefined;
  /** For zones without a known price. */
  readonly usualShare: number;
  /** On demand, US dollars per hour. */
  readonly hourlyUsd: number | undefined;
}

/**
 * Prices for the machines of a file: spot as recorded in the trace, else of the price tables; on demand the cheapest in
 * the regions of the trace, as the hedge compares them. Zones without a price have a usual share of the price on demand.
 */
export async function spotPricesFor(
  { zones, spotUsd = [] }: SpotTrace,
  task: Pick<Task, 'resources' | 'numNodes'>,
  catalogDir: string,
  given: GivenPrices,
): Promise<SpotPrices> {
  const { share, usualShare } = given;
  if (share !== undefined) {
    return {
      spotPrices: zones.map(() => share),
      hourlyUsd: given.hourlyUsd,
      fact: `Spot costs ${share.toFixed(2)} of the price on demand (--spot-price).`,
    };
  }
  const regions = new Set(zones.map(regionOf));
  const offers = (await tableOffers(task, false, catalogDir)).filter(({ region }) => regions.has(region));
  const onDemand = cheapest(offers);
  // Where no spot price is known, the tables give the price on demand.
  const spot = (await tableOffers(task, true, catalogDir)).filter(({ region, instanceType, hourlyUsd: usd }) =>
    offers.some((offer) => offer.region === region && offer.instanceType === instanceType && offer.hourlyUsd > usd),
  );
  const nodes = task.numNodes;
  const hourlyUsd = given.hourlyUsd ?? (onDemand && onDemand.hourlyUsd * nodes);
  const known = zones.map((zone, index) => spotUsd[index] ?? usdOf(spot, zone, nodes));
  const usual = `${usualShare.toFixed(2)} of the price on demand`;
  const usable = known.filter((usd) => usd !== undefined);
  if (hourlyUsd === undefined || usable.length === 0) {
    const fact = `Spot costs ${usual}: no price is known for machines of the file in these zones. --spot-price sets it.`;
    return { spotPrices: zones.map(() => usualShare), hourlyUsd: given.hourlyUsd, fact };
  }
  const machine = given.hourlyUsd === undefined ? onDemand?.instanceType : 'as given';
  const source = spotUsd.length > 0 ? 'of the trace' : 'of the price tables';
  const missing = zones.filter((_, index) => known[index] === undefined).map(zoneNameOf);
  const rest = missing.length === 0 ? '' : ` Without a price: ${missing.join(', ')}; there spot costs ${usual}.`;
  return {
    spotPrices: known.map((usd) => (usd === undefined ? usualShare : usd / hourlyUsd)),
    hourlyUsd,
    fact: `On demand a replica costs $${hourlyUsd.toFixed(2)} per hour (${machine}), on spot ${rangeOf(usable)} (prices ${source}).${rest}`,
  };
}

/** The offers of all price tables for the machines of a file, in one market. A file that names no machine has none. */
async function tableOffers({ resources }: Pick<Task, 'resources'>, useSpot: boolean, catalogDir: string): Promise<readonly CatalogOffer[]> {
  const tables = new PriceTables(catalogDir);
  const offers: CatalogOffer[] = [];
  for (const choice of resources.choices.filter(namesMachine)) {
    for (const cloud of choice.cloud === undefined ? await tables.clouds() : [choice.cloud]) {
      const table = await tables.table(cloud);
      const disks = await tables.disks(cloud);
      if (table !== undefined) offers.push(...catalogOffers(table, { ...choice, useSpot }, { disks }).offers);
    }
  }
  return offers;
}

/** Whether an alternative is about rented machines: anything else may run on this machine. */
function namesMachine({ cloud, instanceType, accelerator, cpus, memory }: Resources): boolean {
  return [cloud, instanceType, accelerator, cpus, memory].some((field) => field !== undefined);
}

/** The price of a spot replica in a zone. The tables give a region as a whole where its zones do not differ. */
function usdOf(offers: readonly CatalogOffer[], zone: string, nodes: number): number | undefined {
  const there = offers.filter((offer) => (offer.zone === undefined ? offer.region === regionOf(zone) : offer.zone === zoneNameOf(zone)));
  const offer = cheapest(there);
  return offer && offer.hourlyUsd * nodes;
}

function cheapest(offers: readonly CatalogOffer[]): CatalogOffer | undefined {
  return offers.toSorted((a, b) => a.hourlyUsd - b.hourlyUsd)[0];
}

function rangeOf(prices: readonly number[]): string {
  const [least, most] = [Math.min(...prices), Math.max(...prices)].map((usd) => `$${usd.toFixed(2)}`);
  return least === most ? `${least}` : `${least} to ${most}`;
}
