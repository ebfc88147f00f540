import { canonicalAccelerator, isSameAccelerator, suggestAccelerator } from '../domain/accelerators.ts';
import { countReasons, whyNot, type MatchableOffer } from '../domain/offer-match.ts';
import type { Resources } from '../domain/task.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { regionsOf, type PriceTable } from './price-table.ts';

/**
 * Why no machine of a price table satisfies the resources: an unknown name, else what excludes the nearest machine (the
 * one with the fewest reasons against it, then the lowest price). `regions`: the only ones to search; undefined: all.
 */
export function whyNoOffer(
  table: PriceTable,
  resources: Resources,
  { regions }: { readonly regions?: readonly string[] | undefined },
): string {
  const { cloud } = table;
  const unknown = unknownName(table, resources);
  if (unknown !== undefined) return unknown;
  const nearest = nearestOffer(table, resources, regions);
  if (nearest === undefined) return `The catalogue of ${cloud} has no machine${regions === undefined ? '' : ` in ${regions.join(', ')}`}.`;
  const { offer } = nearest;
  const why = whyNot(resources, offer) ?? 'has no known price';
  return `No machine of ${cloud} satisfies the resources: the nearest, ${offer.instanceType} in ${offer.region}, ${why}.`;
}

function unknownName(table: PriceTable, { region, instanceType, accelerator }: Resources): string | undefined {
  const { cloud, types } = table;
  const regions = regionsOf(table);
  if (region !== undefined && !regions.includes(region))
    return `The catalogue of ${cloud} has no region '${region}'.${meant(didYouMean(region, regions))}`;
  const names = types.map(({ name }) => name);
  if (instanceType !== undefined && !names.includes(instanceType))
    return `The catalogue of ${cloud} has no instance type '${instanceType}'.${meant(didYouMean(instanceType, names))}`;
  if (accelerator === undefined) return undefined;
  const having = types.filter((type) => type.accelerator !== undefined && isSameAccelerator(type.accelerator.name, accelerator.name));
  if (having.length === 0) {
    const known = canonicalAccelerator(accelerator.name) !== undefined;
    return `The catalogue of ${cloud} has no accelerator '${accelerator.name}'.${known ? '' : meant(suggestAccelerator(accelerator.name))}`;
  }
  const counts = [...new Set(having.map((type) => type.accelerator?.count ?? 0))].toSorted((a, b) => a - b);
  if (counts.includes(accelerator.count)) return undefined;
  return `Machines of ${cloud} have ${counts.join(', ')}x ${accelerator.name}, none has ${accelerator.count}x.`;
}

function meant(name: string | undefined): string {
  return name === undefined ? '' : ` Did you mean '${name}'?`;
}

function nearestOffer(
  { cloud, types }: PriceTable,
  resources: Resources,
  regions: readonly string[] | undefined,
): { readonly offer: MatchableOffer; readonly reasons: number } | undefined {
  // Without the price limit: if a machine satisfies all else, the message shows the limit that would be enough.
  const anyPrice = { ...resources, maxHourlyCost: undefined };
  let best: { readonly offer: MatchableOffer; readonly reasons: number } | undefined;
  for (const { name, regions: prices, ...machine } of types) {
    for (const { region, onDemandUsd, spotUsd } of prices) {
      if (regions !== undefined && !regions.includes(region)) continue;
      const hourlyUsd = resources.useSpot ? (spotUsd ?? onDemandUsd) : onDemandUsd;
      const offer = { ...machine, provider: cloud, region, zone: undefined, instanceType: name, spot: resources.useSpot, hourlyUsd };
      const reasons = countReasons(anyPrice, offer);
      const nearer = best === undefined || reasons < best.reasons || (reasons === best.reasons && priceOf(offer) < priceOf(best.offer));
      if (nearer) best = { offer, reasons };
    }
  }
  return best;
}

function priceOf({ hourlyUsd }: MatchableOffer): number {
  return hourlyUsd ?? Number.POSITIVE_INFINITY;
}
