import { hoursPerMonth } from '../domain/placement/plan.ts';
import { alternativesFor, type MarketRange } from '../domain/spot/markets.ts';
import { spotZoneOf } from '../domain/spot/placer.ts';
import type { Market } from '../domain/placement.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import type { MachineSpec } from '../providers/provider.ts';
import type { MachineCandidate } from './offers.ts';
import { planPlacement, type PlacementPlan, type PlannedOffer, type PlanRequest } from './placement-plan.ts';

interface MarketPlanRequest extends Omit<PlanRequest, 'replicas' | 'spec'> {
  readonly spec: (alternatives: ResourceAlternatives) => (candidate: MachineCandidate) => MachineSpec;
}

/**
 * The plan of a service whose replicas are split by market: spot replicas first, then those that are always on demand.
 * The on-demand replicas that stand in for missing spot replicas are priced, not placed.
 */
export async function planByMarket(
  request: MarketPlanRequest,
  { spot, onDemand, mostOnDemand, needsZones }: MarketRange,
): Promise<PlacementPlan> {
  const planOf = async (market: Market, replicas: number): Promise<PlacementPlan> => {
    const alternatives = alternativesFor(request.alternatives, market);
    const plan = await planPlacement({ ...request, alternatives, replicas, spec: request.spec(alternatives) });
    const numberOf = (number: number): number => {
      const index = request.alternatives.choices.findIndex((choice) => choice === alternatives.choices[number - 1]);
      return index < 0 ? number : index + 1;
    };
    // Offers of the other market belong to its plan.
    const own = plan.offers.filter((offer) => offer.verdict !== 'excluded' || offer.spot === (market === 'spot'));
    return { ...plan, offers: own.map((offer) => ({ ...offer, alternative: numberOf(offer.alternative) })) };
  };
  const ofSpot = await planOf('spot', spot);
  const zones = new Set(ofSpot.offers.filter(({ verdict }) => verdict !== 'excluded').map(spotZoneOf));
  if (mostOnDemand === 0 || (needsZones && zones.size < 2)) return ofSpot;
  const ofOnDemand = await planOf('on-demand', mostOnDemand);
  const always = ofOnDemand.offers.map((offer) => firstReplicas(offer, spot, onDemand));
  const hourlyUsd = ofSpot.hourlyUsd + always.reduce((sum, offer) => sum + offer.hourlyUsd * offer.replicas.length, 0);
  return {
    replicas: spot + onDemand,
    offers: [...ofSpot.offers, ...always],
    places: ofSpot.places,
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    notes: [...new Set([...ofSpot.notes, ...ofOnDemand.notes])],
    ...(ofSpot.isMisnamed === true && ofOnDemand.isMisnamed === true && { isMisnamed: true }),
    ...(mostOnDemand > onDemand && { withoutSpot: { replicas: mostOnDemand, hourlyUsd: ofOnDemand.hourlyUsd } }),
  };
}

/** An on-demand offer with only the replicas that are always on demand; they are numbered after the spot replicas. */
function firstReplicas(offer: PlannedOffer, spot: number, always: number): PlannedOffer {
  if (offer.verdict !== 'chosen') return offer;
  const replicas = offer.replicas.filter((number) => number <= always).map((number) => number + spot);
  return replicas.length > 0 ? { ...offer, replicas } : { ...offer, verdict: 'possible', replicas, why: 'used while spot is missing' };
}
