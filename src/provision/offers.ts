import type { Candidate } from '../domain/placement.ts';
import { excludedBy } from '../domain/offer-match.ts';
import { writtenPlace } from '../domain/place-name.ts';
import { missingAbility } from '../domain/placement/abilities.ts';
import type { PlaceConfig, ResourceAlternatives, Resources } from '../domain/task.ts';
import { fallbackPlace } from '../providers/registry.ts';
import type { Offer, OfferList, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { shortGb } from '../shared/units.ts';
import type { PlaceState } from './places.ts';
import { describeUnknown, unknownAccelerators, type AcceleratorSources } from './unknown-accelerators.ts';

/** A machine that could be had, and for which alternative of the task's resources. */
export type MachineCandidate = Candidate<Offer>;

/** A machine that is out of the question for an alternative, and why: a clause such as `has 2 vCPUs, 4+ wanted`. */
export interface RejectedCandidate extends MachineCandidate {
  readonly why: string;
}

/** Everything the places say about a task. */
export interface OfferSurvey {
  readonly candidates: readonly MachineCandidate[];
  /** What places have but the task rules out; complete only with `explain`. */
  readonly rejected: readonly RejectedCandidate[];
  /** For each place that offers nothing for some alternative: why, beginning with its name. Sentences, each once. */
  readonly reasons: readonly string[];
  /** What places say about their figures. Sentences, each once. */
  readonly notices: readonly string[];
  /** Nothing was found, and all that is wrong are the names of places or of their parts, such as a context. */
  readonly isMisnamed: boolean;
}

/** What asking for offers needs. */
export interface OfferQuery {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Also collect what the places have and the task rules out. */
  readonly explain?: boolean;
  /** Of how many nodes a machine is to be; one when absent. */
  readonly nodes?: number | undefined;
  /** What the task says for places. */
  readonly placeConfig?: PlaceConfig | undefined;
}

/** A list of offers comes from tables or a few calls; a place that takes longer, ms, is left out of this search. */
const offersTimeoutMs = 15_000;

/** Asks all places at once what they have for each alternative. A place that fails or hangs is left out with its reason. */
export async function surveyOffers(
  alternatives: ResourceAlternatives,
  places: readonly PlaceState[],
  query: OfferQuery,
): Promise<OfferSurvey> {
  const perAlternative = await Promise.all(
    alternatives.choices.map((resources, alternative) => surveyAlternative(resources, alternative, places, query)),
  );
  const candidates = perAlternative.flatMap(({ candidates: found }) => found);
  // Where nothing is found, a place that could be enabled may be the one that has it.
  const unasked = candidates.length === 0 && alternatives.choices.some(({ cloud }) => cloud === undefined) ? disabledReasons(places) : [];
  return {
    candidates,
    rejected: perAlternative.flatMap(({ rejected }) => rejected),
    reasons: [...new Set([...perAlternative.flatMap(({ reasons }) => reasons), ...unasked])],
    notices: [...new Set(perAlternative.flatMap(({ notices }) => notices))],
    isMisnamed: perAlternative.every(({ isMisnamed }) => isMisnamed),
  };
}

/**
 * What could be had for a task, at least one. Throws SVC_NO_PLACE or SVC_NO_GPU, with each place's reason, when there is nothing.
 */
export async function collectOffers(
  alternatives: ResourceAlternatives,
  places: readonly PlaceState[],
  query: OfferQuery,
): Promise<readonly MachineCandidate[]> {
  const { candidates, reasons, isMisnamed } = await surveyOffers(alternatives, places, query);
  if (candidates.length === 0) throw isMisnamed ? misnamed(reasons) : nothingOffered(alternatives, reasons, { places, tables: [] });
  return candidates;
}

/** The error that says that no place has what a task asks for, and whether anybody knows the accelerators that it names. */
export function nothingOffered({ choices }: ResourceAlternatives, reasons: readonly string[], sources: AcceleratorSources): SvcError {
  const wantsGpu = choices.every((one) => one.accelerator !== undefined || one.acceleratorMemory !== undefined);
  const unknown = unknownAccelerators(choices, sources);
  const isAll = unknown.length > 0 && choices.every(({ accelerator }) => unknown.some(({ name }) => name === accelerator?.name));
  const sentences = unknown.map(describeUnknown);
  const lines = [...(isAll ? [] : sentences), ...reasons].map((reason) => `  ${reason}`).join('\n');
  if (isAll) {
    return new SvcError('SVC_NO_GPU', `${sentences.join('\n')}\n${lines}`, {
      hint: 'Correct the name, or see those there are with: svc offers',
    });
  }
  return new SvcError(wantsGpu ? 'SVC_NO_GPU' : 'SVC_NO_PLACE', `No enabled place has what the task asks for.\n${lines}`);
}

/** The error that says that the place which a task names, or the part of it, is none; what is asked for there has nothing to do with it. */
export function misnamed(reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError('SVC_NO_PLACE', `The task names a place that there is not.\n${lines}`, {
    hint: 'Correct infra in the file; the places and their parts are shown by: svc check',
  });
}

/**
 * The places that an alternative may use: the one it names; otherwise all that are enabled, and this machine only where there is no other: who
 * has a cloud enabled does not expect a replica on the laptop.
 */
export function placesFor(resources: Pick<Resources, 'cloud'>, places: readonly PlaceState[]): readonly PlaceState[] {
  if (resources.cloud !== undefined) return places.filter(({ name }) => name === resources.cloud);
  const enabled = places.filter(({ provider }) => provider !== undefined);
  const others = enabled.filter(({ name }) => name !== fallbackPlace);
  return others.length > 0 ? others : enabled;
}

async function surveyAlternative(
  resources: Resources,
  alternative: number,
  places: readonly PlaceState[],
  query: OfferQuery,
): Promise<OfferSurvey> {
  const used = placesFor(resources, places);
  const surveys = await Promise.all(used.map((place) => surveyPlace(resources, alternative, place, query)));
  return {
    candidates: surveys.flatMap(({ candidates }) => candidates),
    rejected: surveys.flatMap(({ rejected }) => rejected),
    reasons: used.length === 0 ? noPlaceReasons(resources, places) : surveys.flatMap(({ reasons }) => reasons),
    notices: surveys.flatMap(({ notices }) => notices),
    isMisnamed: used.length === 0 ? resources.cloud !== undefined : surveys.every((survey) => survey.isMisnamed),
  };
}

function noPlaceReasons({ cloud }: Resources, places: readonly PlaceState[]): readonly string[] {
  if (cloud === undefined) return disabledReasons(places);
  const names = places.map(({ name }) => name);
  const written = names.map(writtenPlace);
  const meant = didYouMean(cloud, [...written, ...names]);
  const suggestion = meant === undefined ? '' : ` Did you mean '${writtenPlace(meant)}'?`;
  return [`${cloud}: this version has no such place (it has ${written.join(', ') || 'none'}).${suggestion}`];
}

function disabledReasons(places: readonly PlaceState[]): readonly string[] {
  return places.flatMap(({ name, provider, check }) => (provider === undefined ? [`${name}: ${notEnabled(check.summary)}`] : []));
}

/** Why a place that is not enabled takes no part. */
export function notEnabled(summary: string): string {
  return `not enabled: ${summary.replace(/\.$/, '')}.`;
}

async function surveyPlace(
  resources: Resources,
  alternative: number,
  { name, provider, check }: PlaceState,
  query: OfferQuery,
): Promise<OfferSurvey> {
  const nothing = (reason: string): OfferSurvey => ({
    candidates: [],
    rejected: [],
    reasons: [`${name}: ${reason}`],
    notices: [],
    isMisnamed: false,
  });
  if (provider === undefined) return nothing(notEnabled(check.summary));
  const missing = missingAbility(resources, provider.capabilities, query.nodes);
  if (missing !== undefined) return nothing(`${missing}.`);
  let list: OfferList;
  try {
    list = await askForOffers(provider, resources, query);
  } catch (error) {
    query.signal?.throwIfAborted();
    return nothing(messageOf(error));
  }
  const judged = list.offers.map((offer) => ({ offer, alternative, why: excludedBy(resources, offer) }));
  const candidates = judged.filter(({ why }) => why === undefined).map(({ offer }) => ({ offer, alternative }));
  const excluded = judged.flatMap(({ offer, why }) => (why === undefined ? [] : [{ offer, alternative, why }]));
  const rejected = [...excluded, ...(list.rejected ?? []).map(({ offer, why }) => ({ offer, alternative, why }))];
  const notices = list.notice === undefined ? [] : [list.notice];
  const reasons = candidates.length > 0 ? [] : [`${name}: ${list.whyNone ?? whyExcluded(excluded)}`];
  return { candidates, rejected, reasons, notices, isMisnamed: list.isMisnamed === true };
}

async function askForOffers(
  provider: Provider,
  resources: Resources,
  { clock, signal, explain, placeConfig }: OfferQuery,
): Promise<OfferList> {
  const tooLong = (): Error => new SvcError('SVC_PLACE_FAILED', `it did not say within ${offersTimeoutMs / 1_000} s what it offers.`);
  const ask = (inner: AbortSignal): Promise<OfferList> =>
    provider.offers(resources, { signal: inner, placeConfig, ...(explain === true && { explain }) });
  return withDeadline(clock, offersTimeoutMs, ask, tooLong, signal);
}

/** The cheapest of what was ruled out is the nearest to being had. */
function whyExcluded(excluded: readonly RejectedCandidate[]): string {
  const nearest = excluded.toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)[0];
  return nearest === undefined ? 'nothing there fits.' : `the cheapest, ${nearest.offer.instanceType}, ${nearest.why}.`;
}

/** What a machine of so many nodes of an offer is, in a few words for tables. */
export function describeOffer(offer: Offer, nodes = 1): string {
  const accelerator = offer.accelerator === undefined ? '' : `, ${offer.accelerator.name}:${offer.accelerator.count}`;
  return `${nodes}x(cpus=${offer.cpus}, mem=${shortGb(offer.memoryGb)}${accelerator})${offer.spot ? '[spot]' : ''}`;
}
