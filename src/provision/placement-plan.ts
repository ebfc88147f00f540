import type { OccupiedPlace, PlacementFacts, PlacementMemory } from '../domain/placement.ts';
import { placeName } from '../domain/place-name.ts';
import { hoursPerMonth, planPlaces, type ChoiceReason, type JudgedCandidate, type Verdict } from '../domain/placement/plan.ts';
import { hourlyPrice } from '../domain/price.ts';
import type { PlaceConfig, ResourceAlternatives } from '../domain/task.ts';
import type { MachineSpec, Offer } from '../providers/provider.ts';
import { isoTime, type Clock } from '../shared/clock.ts';
import { notEnabled, placesFor, surveyOffers, type MachineCandidate, type RejectedCandidate } from './offers.ts';
import type { PlaceState } from './places.ts';
import { rehearsePlan, type RehearsedPlan } from './rehearse.ts';

/** A machine that was thought of, with the reason for or against it. Plain data, as are all parts of a plan. */
export interface PlannedOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  /** So many such machines make up one replica; prices are of all of them, the rest is of each. */
  readonly nodes: number;
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

type OneNodeOffer = Omit<PlannedOffer, 'nodes'>;

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
  /** There is no offer, and the notes say which names of places, or of their parts, are wrong. */
  readonly isMisnamed?: boolean | undefined;
}

/** What to plan. */
export interface PlanRequest {
  readonly alternatives: ResourceAlternatives;
  /** Nodes of each machine; one when absent. Prices are of all of them. */
  readonly nodes?: number;
  /** What the task says for places. */
  readonly placeConfig?: PlaceConfig;
  readonly replicas: number;
  readonly places: readonly PlaceState[];
  /** What is known from launches of the service. */
  readonly memory?: PlacementMemory | undefined;
  readonly occupied?: readonly OccupiedPlace[];
  readonly clock: Clock;
  /** Also what the places have and the file rules out. */
  readonly explain: boolean;
  /** What would be asked for: with it what is chosen is shown to places that can say beforehand whether they take it, and what they refuse is not chosen. */
  readonly spec?: (candidate: MachineCandidate) => MachineSpec;
  readonly signal?: AbortSignal;
}

/** Asks the places for their offers, asks none for a machine, and chooses as a launch would. */
export async function planPlacement(request: PlanRequest): Promise<PlacementPlan> {
  const { alternatives, nodes = 1, placeConfig, replicas, places, memory, occupied = [], clock, explain, signal } = request;
  const survey = await surveyOffers(alternatives, places, { clock, explain, signal, nodes, placeConfig });
  const { reasons, notices, isMisnamed } = survey;
  const candidates = survey.candidates.map((one) => ofNodes(one, nodes));
  const rejected = survey.rejected.map((one) => ofNodes(one, nodes));
  const facts = {
    order: alternatives.order,
    refusals: memory?.refusals ?? [],
    starts: memory?.starts ?? [],
    occupied,
    now: clock.now(),
  };
  const { judged, notes } = await judge(candidates, facts, request);
  const crowded = whyNotAll(judged, replicas);
  const planned = [...judged.map(plannedOffer), ...(explain ? excludedOffers(rejected, candidates) : [])];
  const offers = planned.map((offer) => ({ ...offer, nodes }));
  const hourlyUsd = offers.reduce((sum, offer) => sum + offer.hourlyUsd * offer.replicas.length, 0);
  return {
    replicas,
    offers,
    places: plannedPlaces(alternatives, places),
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    notes: [...reasons, ...notices, ...notes, ...crowded],
    ...(isMisnamed && { isMisnamed }),
  };
}

async function judge(
  candidates: readonly MachineCandidate[],
  facts: PlacementFacts,
  { replicas, places, spec, clock, signal }: PlanRequest,
): Promise<RehearsedPlan> {
  if (spec === undefined) return { judged: planPlaces(candidates, replicas, facts), notes: [] };
  const providerOf = ({ offer }: MachineCandidate) => places.find(({ name }) => name === offer.provider)?.provider;
  return rehearsePlan(candidates, replicas, facts, { providerOf, spec, clock, signal });
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

/** The same with the price of a machine of so many nodes, and how many of those fit. */
function ofNodes<C extends MachineCandidate>(candidate: C, nodes: number): C {
  const { offer } = candidate;
  const { hourlyUsd, room } = offer;
  return { ...candidate, offer: { ...offer, hourlyUsd: hourlyUsd * nodes, ...(room !== undefined && { room: Math.floor(room / nodes) }) } };
}

/** How many replicas fit nowhere, and what room there is, where it is room that they lack. A sentence or none. */
function whyNotAll(judged: readonly JudgedCandidate<MachineCandidate>[], replicas: number): readonly string[] {
  const placed = judged.reduce((sum, { verdict }) => sum + (verdict.type === 'chosen' ? verdict.replicas.length : 0), 0);
  const crowded = judged.filter(({ verdict }) => verdict.type === 'chosen' || verdict.type === 'full');
  const missing = replicas - placed;
  if (missing === 0 || crowded.length === 0) return [];
  const rooms = crowded.map(({ candidate: { offer }, verdict }) => {
    const taken = verdict.type === 'chosen' ? verdict.replicas.length : 0;
    return `${placeName(offer)} has room for ${taken}`;
  });
  const all = replicas === 1 ? 'The replica has' : `${missing} of ${replicas} replicas ${missing === 1 ? 'has' : 'have'}`;
  return [`${all} no room now (${[...new Set(rooms)].join(', ')}), and would be asked for again until there is some.`];
}

function plannedOffer({ candidate, verdict }: JudgedCandidate<MachineCandidate>): OneNodeOffer {
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
function excludedOffers(rejected: readonly RejectedCandidate[], candidates: readonly MachineCandidate[]): readonly OneNodeOffer[] {
  const possible = new Set(candidates.map(({ offer }) => nameOf(offer)));
  return rejected
    .filter(({ offer }) => !possible.has(nameOf(offer)))
    .toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)
    .map((one) => ({ ...describe(one), verdict: 'excluded', replicas: [], why: one.why }));
}

function describe({ offer, alternative }: MachineCandidate): Omit<OneNodeOffer, 'verdict' | 'replicas' | 'why'> {
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

const choiceTexts: Readonly<Record<ChoiceReason, string>> = {
  only: 'the only place that has it',
  best: 'the best that may be asked',
  spread: 'equally good; replicas are spread',
  'better-full': 'what is better has no room left',
};

function describeVerdict(verdict: Verdict): string {
  switch (verdict.type) {
    case 'chosen':
      return choiceTexts[verdict.because];
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
    case 'full':
      return 'no room there now';
  }
}
