import type { ResourceAlternatives } from '../domain/task.ts';
import type { Offer, Provider } from '../providers/provider.ts';
import { SvcError } from '../shared/errors.ts';

/** Offers of equal preference, over all places. */
export interface AlternativeOffers {
  readonly offers: readonly Offer[];
}

/**
 * Everything that could be had for a task, as groups in order of preference: one group per alternative when the file orders them, else one
 * group in all. Throws SVC_NO_PLACE or SVC_NO_GPU, with each place's reason, when there is nothing.
 */
export async function collectOffers(
  alternatives: ResourceAlternatives,
  providers: readonly Provider[],
  signal?: AbortSignal,
): Promise<readonly AlternativeOffers[]> {
  const reasons: string[] = [];
  const found: AlternativeOffers[] = [];
  for (const resources of alternatives.choices) {
    const offers: Offer[] = [];
    for (const provider of providers) {
      if (resources.cloud !== undefined && resources.cloud !== provider.name) continue;
      const list = await provider.offers(resources, signal === undefined ? {} : { signal });
      const affordable = list.offers.filter((offer) => resources.maxHourlyCost === undefined || offer.hourlyUsd <= resources.maxHourlyCost);
      offers.push(...affordable);
      if (list.whyNone !== undefined) reasons.push(`${provider.name}: ${list.whyNone}`);
      else if (affordable.length === 0)
        reasons.push(`${provider.name}: everything costs more than max_hourly_cost (${resources.maxHourlyCost} $/h).`);
    }
    if (!providers.some((provider) => resources.cloud === undefined || resources.cloud === provider.name)) {
      const enabled = providers.map((provider) => provider.name).join(', ');
      reasons.push(`${resources.cloud}: not an enabled place (enabled: ${enabled || 'none'}).`);
    }
    if (offers.length > 0) found.push({ offers });
  }
  if (found.length === 0) {
    const wantsGpu = alternatives.choices.every((one) => one.accelerator !== undefined || one.acceleratorMemory !== undefined);
    throw new SvcError(
      wantsGpu ? 'SVC_NO_GPU' : 'SVC_NO_PLACE',
      `No enabled place has what the task asks for.\n${[...new Set(reasons)].map((reason) => `  ${reason}`).join('\n')}`,
    );
  }
  if (alternatives.order === 'ordered') return found;
  return [{ offers: found.flatMap((group) => group.offers) }];
}

/** What a machine of an offer is, in a few words for tables. */
export function describeOffer(offer: Offer): string {
  const accelerator = offer.accelerator === undefined ? '' : `, ${offer.accelerator.name}:${offer.accelerator.count}`;
  return `1x(cpus=${offer.cpus}, mem=${Math.round(offer.memoryGb)}${accelerator})${offer.spot ? '[spot]' : ''}`;
}
