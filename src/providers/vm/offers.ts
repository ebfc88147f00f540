import { catalogNotice } from '../../catalog/price-table.ts';
import { catalogOffers, type CatalogOffer } from '../../catalog/catalog-offers.ts';
import type { PriceTables } from '../../catalog/price-tables.ts';
import type { Resources } from '../../domain/task.ts';
import type { Offer, OfferList } from '../provider.ts';
import type { VmDriver, VmSettings } from './driver.ts';

interface VmOfferOptions {
  readonly tables: PriceTables;
  readonly settings: Pick<VmSettings, 'regions'>;
  readonly explain: boolean;
  /** ms since the epoch, for the age of prices. */
  readonly now: number;
}

/** Uses the price table and the images; sends no request to the cloud. */
export async function vmOffers(
  driver: Pick<VmDriver, 'name' | 'title' | 'chooseImage'>,
  resources: Resources,
  { tables, settings, explain, now }: VmOfferOptions,
): Promise<OfferList> {
  const { name, title } = driver;
  const table = await tables.table(name);
  if (table === undefined)
    return { offers: [], whyNone: `There is no table of prices of ${name}: reinstall svc, or run: svc catalog update ${name}.` };
  const disks = await tables.disks(name);
  const { offers, whyNone, rejected = [] } = catalogOffers(table, resources, { regions: settings.regions, disks, explain });
  const judged = offers.map((offer) => ({ offer: plainOffer(offer), image: driver.chooseImage(resources.imageId, offer) }));
  const without = judged.flatMap(({ offer, image }) => (typeof image === 'string' ? [{ offer, why: image }] : []));
  const good = judged.flatMap(({ offer, image }) => (typeof image === 'string' ? [] : [offer]));
  const [unimaged] = without;
  const whyNoImage = unimaged && `${title} has ${unimaged.offer.instanceType} in ${unimaged.offer.region}, but ${unimaged.why}.`;
  return {
    offers: good,
    whyNone: good.length > 0 ? undefined : (whyNone ?? whyNoImage),
    notice: catalogNotice(table, now),
    ...(explain ? { rejected: [...without, ...rejected.map(({ offer, why }) => ({ offer: plainOffer(offer), why }))] } : {}),
  };
}

/** Offers are stored and compared, so extra fields are removed. */
function plainOffer(offer: CatalogOffer): Offer {
  const { provider, region, zone, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd } = offer;
  return { provider, region, zone, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd };
}
