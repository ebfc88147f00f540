import type { OccupiedPlace, PlacementMemory } from '../domain/placement.ts';
import { hoursPerMonth, planPlaces, type JudgedCandidate, type Verdict } from '../domain/placement/plan.ts';
import { hourlyPrice } from '../domain/price.ts';
import type { ResourceAlternatives } from '../domain/task.ts';
import type { Offer } from '../providers/provider.ts';
import { isoTime, type Clock } from '../shared/clock.ts';
import { notEnabled, placesFor, surveyOffers, type MachineCandidate, type RejectedCandidate } from './offers.ts';
import type { PlaceState } from './places.ts';

/** A machine that was thought of, with the reason for or against it. Plain data, as are all parts of a plan. */
export interface PlannedOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `NAME:COUNT` */
  readonly accelerators: string | null;
  readonly spot: boolean;
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Which alternative of the file's resources it is for, counted from 1. */
  readonly alternative: number;
  /** `possible`: comes after what is chosen; `refused`: its place gives none for now; `excluded`: does not do for the file. */
  readonly verdict: 'chosen' | 'possible' | 'refused' | 'excluded';
  /** Numbers of the replicas that it is chosen for, counted from 1. */
  readonly replicas: readonly number[];
  /** Why, as a clause. */
  readonly why: string;
}

/** A place, and whether the plan may use it. */
export interface PlannedPlace {
  readonly name: string;
  readonly takesPart: boolean;
  /** Why it takes no part; null when it does. */
  readonly why: string | null;
}

/** Where the replicas of a service would be put now, and why there. */
export interface PlacementPlan {
  /** How many replicas were planned. */
  readonly replicas: number;
  /** Best first; what is excluded comes last, cheapest first, and complete only when it was asked for. */
  readonly offers: readonly PlannedOffer[];
  readonly places: readonly PlannedPlace[];
  /** Of the planned replicas together. */
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Why places offer nothing, and what is to be known about the figures. Sentences. */
  readonly notes: readonly string[];
}

/** What to plan. */
export interface PlanRequest {
  readonly alternatives: ResourceAlternatives;
  readonly replicas: number;
  readonly places: readonly PlaceState[];
  /** What is known from launches of the service. */
  readonly memory?: PlacementMemory | undefined;
  readonly occupied?: readonly OccupiedPlace[];
  readonly clock: Clock;
  /** Also what the places have and the file rules out. */
  readonly explain: boolean;
  readonly signal?: AbortSignal;
}

/** Asks the places for their offers, asks none for a machine, and chooses as a launch would. */
export async function planPlacement(request: PlanRequest): Promise<PlacementPlan> {
  const { alternatives, replicas, places, memory, occupied = [], clock, explain, signal } = request;
  const { candidates, rejected, reasons, notices } = await surveyOffers(alternatives, places, { clock, explain, signal });
  const facts = {
    order: alternatives.order,
    refusals: memory?.refusals ?? [],
    starts: memory?.starts ?? [],
    occupied,
    now: clock.now(),
  };
  const judged = planPlaces(candidates, replicas, facts);
  const offers = [...judged.map(plannedOffer), ...(explain ? excludedOffers(rejected, candidates) : [])];
  const hourlyUsd = offers.reduce((sum, offer) => sum + offer.hourlyUsd * offer.replicas.length, 0);
  return {
    replicas,
    offers,
    places: plannedPlaces(alternatives, places),
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    notes: [...reasons, ...notices],
  };
}

/** Whether any of the replicas has a place now. */
export function hasChoice(plan: PlacementPlan): boolean {
  return plan.offers.some(({ verdict }) => verdict === 'chosen');
}

function plannedPlaces({ choices }: ResourceAlternatives, places: readonly PlaceState[]): readonly PlannedPlace[] {
  const used = new Set(choices.flatMap((resources) => placesFor(resources, places)));
  return places.map((place) => {
    const { name, provider, check } = place;
    if (provider === undefined) return { name, takesPart: false, why: notEnabled(check.summary) };
    if (used.has(place)) return { name, takesPart: true, why: null };
    return {
      name,
      takesPart: false,
      why: choices.some(({ cloud }) => cloud === undefined) ? 'other places come first.' : 'the file does not name it.',
    };
  });
}

function plannedOffer({ candidate, verdict }: JudgedCandidate<MachineCandidate>): PlannedOffer {
  const kind = verdict.type === 'chosen' || verdict.type === 'refused' ? verdict.type : 'possible';
  return {
    ...describe(candidate),
    verdict: kind,
    replicas: verdict.type === 'chosen' ? verdict.replicas : [],
    why: describeVerdict(verdict),
  };
}

/** Tells kinds of machines apart. */
const nameOf = ({ provider, region, zone, instanceType, accelerator, spot }: Offer): string =>
  JSON.stringify([provider, region, zone, instanceType, accelerator, spot]);

/** What does for another alternative is no exclusion. */
function excludedOffers(rejected: readonly RejectedCandidate[], candidates: readonly MachineCandidate[]): readonly PlannedOffer[] {
  const possible = new Set(candidates.map(({ offer }) => nameOf(offer)));
  return rejected
    .filter(({ offer }) => !possible.has(nameOf(offer)))
    .toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)
    .map((one) => ({ ...describe(one), verdict: 'excluded', replicas: [], why: one.why }));
}

function describe({ offer, alternative }: MachineCandidate): Omit<PlannedOffer, 'verdict' | 'replicas' | 'why'> {
  const { provider, region, zone = null, instanceType, cpus, memoryGb, accelerator, spot, hourlyUsd } = offer;
  return {
    provider,
    region,
    zone,
    instanceType,
    cpus,
    memoryGb,
    accelerators: accelerator === undefined ? null : `${accelerator.name}:${accelerator.count}`,
    spot,
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    alternative: alternative + 1,
  };
}

function describeVerdict(verdict: Verdict): string {
  switch (verdict.type) {
    case 'chosen':
      return 'the best that may be asked';
    case 'refused':
      return `refused until ${isoTime(verdict.until)}: ${verdict.reason}`;
    case 'later-alternative':
      return 'an alternative before it has a machine';
    case 'dearer':
      return `${hourlyPrice(verdict.byUsd)} dearer`;
    case 'slower':
      return `equally cheap, but starts slower (about ${Math.round(verdict.medianMs / 1_000)} s)`;
    case 'equal':
      return 'as good; further replicas come here';
  }
}
