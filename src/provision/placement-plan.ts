import { type OccupiedLocation, type PlacementFacts, type PlacementMemory, kindOf } from '../domain/placement.ts';
import { locationName } from '../domain/location-name.ts';
import { type Refused, describeScope, rememberRefusal } from '../domain/placement/refusals.ts';
import { type ChoiceReason, type JudgedCandidate, type Verdict, hoursPerMonth, planReplicaPlacement } from '../domain/placement/plan.ts';
import { hourlyPrice } from '../domain/price.ts';
import type { ProviderConfig, ResourceAlternatives } from '../domain/task.ts';
import type { MachineSpec, Offer, Provider } from '../providers/provider.ts';
import { type Clock, isoTime } from '../shared/clock.ts';
import { type MachineCandidate, type RejectedCandidate, providersFor, surveyOffers } from './offers.ts';
import { type ProviderState, whyOut } from './providers.ts';
import { withDeadline } from '../shared/deadline.ts';
import { SvcError, messageOf } from '../shared/errors.ts';
import { asSentence } from '../shared/text.ts';
import { refusalFrom } from './request-machine.ts';

/** A considered machine and the reason for or against it. Plain data. */
export interface PlannedOffer {
  readonly provider: string;
  readonly region: string;
  readonly zone: string | null;
  readonly instanceType: string;
  /** Number of such machines per replica. Prices cover all of them; other fields describe one. */
  readonly nodes: number;
  readonly cpus: number;
  readonly memoryGb: number;
  /** `NAME:COUNT` */
  readonly accelerators: string | null;
  readonly spot: boolean;
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Number of the resource alternative in the file, from 1. */
  readonly alternative: number;
  /** `possible`: ranked after the chosen ones. `refused`: by its provider, for now. `excluded`: by the file. */
  readonly verdict: 'chosen' | 'possible' | 'refused' | 'excluded';
  /** Numbers of the replicas that use it, from 1. */
  readonly replicas: readonly number[];
  /** A clause. */
  readonly why: string;
}

type OneNodeOffer = Omit<PlannedOffer, 'nodes'>;

interface PlannedProvider {
  readonly name: string;
  readonly takesPart: boolean;
  /** Null when it may. */
  readonly why: string | null;
}

/** Where a service's replicas would be placed if they were launched now, with reasons. */
export interface PlacementPlan {
  readonly replicas: number;
  /** Best first. Excluded offers come last, cheapest first, complete only with `explain`. */
  readonly offers: readonly PlannedOffer[];
  readonly places: readonly PlannedProvider[];
  readonly hourlyUsd: number;
  readonly monthlyUsd: number;
  /** Why providers offer nothing, and remarks about figures. Sentences. */
  readonly notes: readonly string[];
  /** Whether there is no offer because names of providers or of their parts are wrong. The notes name them. */
  readonly isMisnamed?: boolean | undefined;
  /** Replicas on demand, and their price, while no spot replica is ready; absent without such replicas. */
  readonly withoutSpot?: { readonly replicas: number; readonly hourlyUsd: number } | undefined;
}

/** Input of a plan. */
export interface PlanRequest {
  readonly alternatives: ResourceAlternatives;
  /** Per machine; default: 1. Prices cover all of them. */
  readonly nodes?: number;
  readonly providerConfig?: ProviderConfig;
  readonly replicas: number;
  readonly providers: readonly ProviderState[];
  readonly placer?: PlacementFacts['placer'];
  readonly zoneOrder?: PlacementFacts['zoneOrder'];
  readonly readySeconds?: PlacementFacts['readySeconds'];
  readonly memory?: PlacementMemory | undefined;
  readonly occupied?: readonly OccupiedLocation[];
  readonly clock: Clock;
  /** Whether to include offers that the file rules out. */
  readonly explain: boolean;
  /** When present, providers with a preflight check the chosen machines. Refused ones are not chosen. */
  readonly spec?: (candidate: MachineCandidate) => MachineSpec;
  readonly signal?: AbortSignal;
}

/** Collects offers and chooses as a launch would. Requests no machine. */
export async function planPlacement(request: PlanRequest): Promise<PlacementPlan> {
  const { alternatives, nodes = 1, providerConfig, replicas, providers, memory, occupied = [], clock, explain, signal } = request;
  const survey = await surveyOffers(alternatives, providers, { clock, explain, signal, nodes, providerConfig });
  const { reasons, notices, isMisnamed } = survey;
  const candidates = survey.candidates.map((one) => ofNodes(one, nodes));
  const rejected = survey.rejected.map((one) => ofNodes(one, nodes));
  const facts = {
    order: alternatives.order,
    refusals: [],
    starts: [],
    ...memory,
    occupied,
    now: clock.now(),
    placer: request.placer,
    zoneOrder: request.zoneOrder,
    readySeconds: request.readySeconds,
  };
  const { judged, notes } = await judge(candidates, facts, request);
  const crowded = whyNotAll(judged, replicas);
  const planned = [...judged.map(plannedOffer), ...(explain ? excludedOffers(rejected, candidates) : [])];
  const offers = planned.map((offer) => ({ ...offer, nodes }));
  const hourlyUsd = offers.reduce((sum, offer) => sum + offer.hourlyUsd * offer.replicas.length, 0);
  return {
    replicas,
    offers,
    places: plannedProviders(alternatives, providers),
    hourlyUsd,
    monthlyUsd: hourlyUsd * hoursPerMonth,
    notes: [...reasons, ...notices, ...notes, ...crowded],
    ...(isMisnamed && { isMisnamed }),
  };
}

async function judge(
  candidates: readonly MachineCandidate[],
  facts: PlacementFacts,
  { replicas, providers, spec, clock, signal }: PlanRequest,
): Promise<PreflightedPlan> {
  if (spec === undefined) return { judged: planReplicaPlacement(candidates, replicas, facts), notes: [] };
  const providerOf = ({ offer }: MachineCandidate) => providers.find(({ name }) => name === offer.provider)?.provider;
  return preflightPlan(candidates, replicas, facts, { providerOf, spec, clock, signal });
}

/** Whether a replica has an offer now. */
export function hasChoice(plan: PlacementPlan): boolean {
  return plan.offers.some(({ verdict }) => verdict === 'chosen');
}

function plannedProviders({ choices }: ResourceAlternatives, providers: readonly ProviderState[]): readonly PlannedProvider[] {
  const used = new Set(choices.flatMap((resources) => providersFor(resources, providers)));
  return providers.map((state) => {
    const { name, provider } = state;
    if (provider === undefined) return { name, takesPart: false, why: whyOut(state) };
    if (used.has(state)) return { name, takesPart: true, why: null };
    return {
      name,
      takesPart: false,
      why: choices.some(({ cloud }) => cloud === undefined) ? 'other providers come first.' : 'the file does not name it.',
    };
  });
}

/** Price and room for machines of several nodes. */
function ofNodes<C extends MachineCandidate>(candidate: C, nodes: number): C {
  const { offer } = candidate;
  const { hourlyUsd, room } = offer;
  return { ...candidate, offer: { ...offer, hourlyUsd: hourlyUsd * nodes, ...(room !== undefined && { room: Math.floor(room / nodes) }) } };
}

/** If room is the cause: how many replicas fit nowhere and how much room exists. */
function whyNotAll(judged: readonly JudgedCandidate<MachineCandidate>[], replicas: number): readonly string[] {
  const placed = judged.reduce((sum, { verdict }) => sum + (verdict.type === 'chosen' ? verdict.replicas.length : 0), 0);
  const crowded = judged.filter(({ verdict }) => verdict.type === 'chosen' || verdict.type === 'full');
  const missing = replicas - placed;
  if (missing === 0 || crowded.length === 0) return [];
  const rooms = crowded.map(({ candidate: { offer }, verdict }) => {
    const taken = verdict.type === 'chosen' ? verdict.replicas.length : 0;
    return `${locationName(offer)} has room for ${taken}`;
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

const nameOf = ({ provider, region, zone, instanceType, accelerator, spot }: Offer): string =>
  JSON.stringify([provider, region, zone, instanceType, accelerator, spot]);

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
  only: 'the only location that offers it',
  best: 'the best that may be asked',
  spread: 'equally good; replicas are spread',
  zones: 'spot replicas are spread over zones',
  'better-full': 'what is better has no room left',
};

function describeVerdict(verdict: Verdict): string {
  switch (verdict.type) {
    case 'chosen':
      return choiceTexts[verdict.because];
    case 'refused':
      return `refused (${verdict.refusal.kind}) until ${isoTime(verdict.until)} for ${describeScope(verdict.refusal)}: ${verdict.refusal.reason}`;
    case 'later-alternative':
      return 'an alternative before it has a machine';
    case 'dearer':
      return `${hourlyPrice(verdict.byUsd)} dearer`;
    case 'later-ready':
      return `a replica would be ready later there (about ${Math.round(verdict.seconds)} s), and requests wait`;
    case 'slower':
      return `equally cheap, but starts slower (about ${Math.round(verdict.medianMs / 1_000)} s)`;
    case 'equal':
      return 'as good; further replicas come here';
    case 'full':
      return 'no room there now';
  }
}

interface PreflightDeps {
  readonly providerOf: (candidate: MachineCandidate) => Provider | undefined;
  readonly spec: (candidate: MachineCandidate) => MachineSpec;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Every provider with a preflight has accepted its chosen machines. */
interface PreflightedPlan {
  readonly judged: readonly JudgedCandidate<MachineCandidate>[];
  /** Refusals with their remedies, and providers that did not answer. Sentences. */
  readonly notes: readonly string[];
}

/** ms. After it, the provider's answer comes only with the real request. */
const preflightTimeoutMs = 8_000;

const late = (): Error => new SvcError('SVC_PLACE_FAILED', `no answer within ${preflightTimeoutMs / 1_000} s`);

/** Repeats the choice without refused machines until all chosen ones are accepted. Checks each kind of machine once. */
async function preflightPlan(
  candidates: readonly MachineCandidate[],
  replicas: number,
  facts: PlacementFacts,
  deps: PreflightDeps,
): Promise<PreflightedPlan> {
  const shown = new Set<string>();
  const notes: string[] = [];
  let { refusals } = facts;
  for (;;) {
    const judged = planReplicaPlacement(candidates, replicas, { ...facts, refusals });
    const chosen = judged.flatMap(({ candidate, verdict }) => (verdict.type === 'chosen' ? [candidate] : []));
    const unshown = chosen.filter(({ offer }) => !shown.has(kindOf(offer)));
    if (unshown.length === 0) return { judged, notes };
    const answers = await Promise.all(unshown.map(async (candidate) => ({ candidate, answer: await show(candidate, deps) })));
    for (const { candidate, answer } of answers) {
      const { offer } = candidate;
      shown.add(kindOf(offer));
      if (answer === undefined) continue;
      notes.push(`${locationName(offer)}: ${answer.note}`);
      if (answer.refused !== undefined) refusals = rememberRefusal(refusals, offer, answer.refused, facts.now, 0);
    }
  }
}

interface PreflightResult {
  readonly note: string;
  /** Absent: the provider did not answer and may still accept the machine. */
  readonly refused?: Refused;
}

async function show(candidate: MachineCandidate, { providerOf, spec, clock, signal }: PreflightDeps): Promise<PreflightResult | undefined> {
  const provider = providerOf(candidate);
  if (provider?.preflight === undefined) return undefined;
  const ask = async (inner: AbortSignal): Promise<void> => provider.preflight?.(candidate.offer, spec(candidate), { signal: inner });
  try {
    await withDeadline(clock, preflightTimeoutMs, ask, late, signal);
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    const answer = refusalFrom(error);
    const said = asSentence(messageOf(error));
    if (answer?.type !== 'refused') return { note: `it is not known whether it takes this: ${said}` };
    return { note: error instanceof SvcError ? `${said} ${error.hint}` : said, refused: answer.refused };
  }
}
