import { catalogNotice } from '../../catalog/catalog-notice.ts';
import { catalogOffers, type CatalogOffer } from '../../catalog/catalog-offers.ts';
import type { PriceTables } from '../../catalog/price-tables.ts';
import type { AwsConfig } from '../../domain/config.ts';
import type { Resources } from '../../domain/task.ts';
import type { Offer, OfferList } from '../provider.ts';
import { chooseImage } from './image-choice.ts';

/** What AWS has for resources, from the tables of prices: AWS itself is not asked. `now` is ms, for telling whether the prices are old. */
export async function awsOffers(
  resources: Resources,
  tables: PriceTables,
  config: Pick<AwsConfig, 'regions'>,
  explain: boolean,
  now: number,
): Promise<OfferList> {
  const table = await tables.table('aws');
  if (table === undefined)
    return { offers: [], whyNone: 'There is no table of prices of aws: reinstall svc, or run: svc catalog update aws.' };
  const disks = await tables.disks('aws');
  const { offers, whyNone, rejected = [] } = catalogOffers(table, resources, { regions: config.regions, disks, explain });
  const judged = offers.map((offer) => ({ offer: plainOffer(offer), image: chooseImage(resources.imageId, offer) }));
  const without = judged.flatMap(({ offer, image }) => (typeof image === 'string' ? [{ offer, why: image }] : []));
  const good = judged.flatMap(({ offer, image }) => (typeof image === 'string' ? [] : [offer]));
  const [unimaged] = without;
  const whyNoImage = unimaged && `AWS has ${unimaged.offer.instanceType} in ${unimaged.offer.region}, but ${unimaged.why}.`;
  return {
    offers: good,
    whyNone: good.length > 0 ? undefined : (whyNone ?? whyNoImage),
    notice: catalogNotice(table, now),
    ...(explain ? { rejected: [...without, ...rejected.map(({ offer, why }) => ({ offer: plainOffer(offer), why }))] } : {}),
  };
}

/** An offer is stored and compared: it has the fields of one and no more. */
function plainOffer(offer: CatalogOffer): Offer {
  const { provider, region, zone, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd } = offer;
  return { provider, region, zone, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd };
}
