import type { Candidate } from '../domain/placement.ts';
import { excludedBy, missingAbility } from '../domain/offer-match.ts';
import { infraName } from '../domain/location-name.ts';
import type { ProviderConfig, ResourceAlternatives, Resources } from '../domain/task.ts';
import { fallbackProvider } from '../providers/registry.ts';
import type { Offer, OfferList, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { didYouMean } from '../shared/did-you-mean.ts';
import { SvcError, messageOf } from '../shared/errors.ts';
import { shortGb } from '../shared/units.ts';
import { type ProviderState, askProviders, whyOut } from './providers.ts';
import { canonicalAccelerator, isSameAccelerator, nearestAccelerators } from '../domain/accelerators.ts';
import { isGpuNamed } from '../domain/gpus.ts';

/** An offer and the resource alternative that it satisfies. */
export type MachineCandidate = Candidate<Offer>;

/** An offer that does not satisfy an alternative; `why` is a clause such as `has 2 vCPUs, 4+ requested`. */
export interface RejectedCandidate extends MachineCandidate {
  readonly why: string;
}

interface OfferSurvey {
  readonly candidates: readonly MachineCandidate[];
  /** Complete only with `explain`. */
  readonly rejected: readonly RejectedCandidate[];
  /** Per provider without an offer for some alternative; each begins with its name. Distinct sentences. */
  readonly reasons: readonly string[];
  /** Providers' remarks about their figures. Distinct sentences. */
  readonly notices: readonly string[];
  /** Whether there is no offer only because names of providers or of their parts, such as a context, are wrong. */
  readonly isMisnamed: boolean;
  /** Whether some provider's machines suffice and have no room now. */
  readonly isFull: boolean;
}

interface OfferQuery {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Whether to collect offers that the task rules out, too. */
  readonly explain?: boolean;
  /** Nodes per machine; default: 1. */
  readonly nodes?: number | undefined;
  readonly providerConfig?: ProviderConfig | undefined;
  /** Whether no candidate is an answer, too, while only room is missing. */
  readonly acceptsFull?: boolean;
}

/** ms. Offers need tables or a few calls. A search leaves out a provider that takes longer. */
const offersTimeoutMs = 15_000;

/** Asks all providers at once for each alternative. A provider that fails or hangs is left out, with the reason. */
export async function surveyOffers(
  alternatives: ResourceAlternatives,
  providers: readonly ProviderState[],
  query: OfferQuery,
): Promise<OfferSurvey> {
  const perAlternative = await Promise.all(
    alternatives.choices.map((resources, alternative) => surveyAlternative(resources, alternative, providers, query)),
  );
  const candidates = perAlternative.flatMap(({ candidates: found }) => found);
  // Without a candidate, a disabled provider may have a suitable machine.
  const unasked =
    candidates.length === 0 && alternatives.choices.some(({ cloud }) => cloud === undefined) ? disabledReasons(providers) : [];
  return {
    candidates,
    rejected: perAlternative.flatMap(({ rejected }) => rejected),
    reasons: [...new Set([...perAlternative.flatMap(({ reasons }) => reasons), ...unasked])],
    notices: [...new Set(perAlternative.flatMap(({ notices }) => notices))],
    isMisnamed: perAlternative.every(({ isMisnamed }) => isMisnamed),
    isFull: perAlternative.some(({ isFull }) => isFull),
  };
}

/** Returns at least one candidate, or with `acceptsFull` none. Else throws SVC_NO_PLACE or SVC_NO_GPU with the reasons. */
export async function collectOffers(
  alternatives: ResourceAlternatives,
  providers: readonly ProviderState[],
  query: OfferQuery,
): Promise<readonly MachineCandidate[]> {
  return candidatesOf(await surveyOffers(alternatives, providers, query), alternatives, providers, query);
}

function candidatesOf(
  { candidates, reasons, isMisnamed, isFull }: OfferSurvey,
  alternatives: ResourceAlternatives,
  providers: readonly ProviderState[],
  { acceptsFull = false }: OfferQuery,
): readonly MachineCandidate[] {
  if (candidates.length === 0 && !(acceptsFull && isFull))
    throw isMisnamed ? misnamed(reasons) : nothingOffered(alternatives, reasons, { providers, tables: [] });
  return candidates;
}

/** As `collectOffers`, with the current states. Waits for late providers only when the others have no offer. */
export async function collectOffersNow(
  alternatives: ResourceAlternatives,
  states: () => Promise<readonly ProviderState[]>,
  query: OfferQuery,
): Promise<{ readonly providers: readonly ProviderState[]; readonly candidates: readonly MachineCandidate[] }> {
  const { providers, answer } = await askProviders(
    states,
    (some) => surveyOffers(alternatives, some, query),
    ({ candidates }) => candidates.length > 0,
    { signal: query.signal },
  );
  return { providers, candidates: candidatesOf(answer, alternatives, providers, query) };
}

/** The error for a task without offers. Names accelerators that neither svc nor a provider nor a price table knows. */
export function nothingOffered({ choices }: ResourceAlternatives, reasons: readonly string[], sources: AcceleratorSources): SvcError {
  const requestsGpu = choices.every((one) => one.accelerator !== undefined || one.acceleratorMemory !== undefined);
  const unknown = unknownAccelerators(choices, sources);
  const isAll = unknown.length > 0 && choices.every(({ accelerator }) => unknown.some(({ name }) => name === accelerator?.name));
  const sentences = unknown.map(describeUnknown);
  const lines = [...(isAll ? [] : sentences), ...reasons].map((reason) => `  ${reason}`).join('\n');
  if (isAll) {
    return new SvcError('SVC_NO_GPU', `${sentences.join('\n')}\n${lines}`, {
      hint: 'Correct the name, or see those there are with: svc offers',
    });
  }
  return new SvcError(requestsGpu ? 'SVC_NO_GPU' : 'SVC_NO_PLACE', `No enabled provider offers what the task requests.\n${lines}`);
}

/** The error for a wrong name of a provider or of its part: the requested resources are not the cause. */
export function misnamed(reasons: readonly string[]): SvcError {
  const lines = reasons.map((reason) => `  ${reason}`).join('\n');
  return new SvcError('SVC_NO_PLACE', `The task names an unknown location.\n${lines}`, {
    hint: 'Correct infra in the file; list the providers and their parts with: svc check',
  });
}

/**
 * The providers that an alternative may use: the one it names, else all enabled ones. The local machine is used only if
 * no other provider is enabled or still being checked: users with a cloud do not expect a replica on their laptop.
 */
export function providersFor(resources: Pick<Resources, 'cloud'>, providers: readonly ProviderState[]): readonly ProviderState[] {
  if (resources.cloud !== undefined) return providers.filter(({ name }) => name === resources.cloud);
  const enabled = providers.filter(({ provider }) => provider !== undefined);
  const others = enabled.filter(({ name }) => name !== fallbackProvider);
  if (others.length > 0) return others;
  return providers.some(({ late }) => late !== undefined) ? [] : enabled;
}

async function surveyAlternative(
  resources: Resources,
  alternative: number,
  providers: readonly ProviderState[],
  query: OfferQuery,
): Promise<OfferSurvey> {
  const used = providersFor(resources, providers);
  const surveys = await Promise.all(used.map((state) => surveyProvider(resources, alternative, state, query)));
  return {
    candidates: surveys.flatMap(({ candidates }) => candidates),
    rejected: surveys.flatMap(({ rejected }) => rejected),
    reasons: used.length === 0 ? noProviderReasons(resources, providers) : surveys.flatMap(({ reasons }) => reasons),
    notices: surveys.flatMap(({ notices }) => notices),
    isMisnamed: used.length === 0 ? resources.cloud !== undefined : surveys.every((survey) => survey.isMisnamed),
    isFull: surveys.some((survey) => survey.isFull),
  };
}

function noProviderReasons({ cloud }: Resources, providers: readonly ProviderState[]): readonly string[] {
  if (cloud === undefined) return disabledReasons(providers);
  const names = providers.map(({ name }) => name);
  const written = names.map(infraName);
  const meant = didYouMean(cloud, [...written, ...names]);
  const suggestion = meant === undefined ? '' : ` Did you mean '${infraName(meant)}'?`;
  return [`${cloud}: this version has no such provider (it has ${written.join(', ') || 'none'}).${suggestion}`];
}

function disabledReasons(providers: readonly ProviderState[]): readonly string[] {
  return providers.flatMap((state) => (state.provider === undefined ? [`${state.name}: ${whyOut(state)}`] : []));
}

async function surveyProvider(resources: Resources, alternative: number, state: ProviderState, query: OfferQuery): Promise<OfferSurvey> {
  const { name, provider } = state;
  const nothing = (reason: string): OfferSurvey => ({
    candidates: [],
    rejected: [],
    reasons: [`${name}: ${reason}`],
    notices: [],
    isMisnamed: false,
    isFull: false,
  });
  if (provider === undefined) return nothing(whyOut(state));
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
  return { candidates, rejected, reasons, notices, isMisnamed: list.isMisnamed === true, isFull: list.isFull === true };
}

async function askForOffers(
  provider: Provider,
  resources: Resources,
  { clock, signal, explain, providerConfig }: OfferQuery,
): Promise<OfferList> {
  const tooLong = (): Error => new SvcError('SVC_PLACE_FAILED', `it did not say within ${offersTimeoutMs / 1_000} s what it offers.`);
  const ask = (inner: AbortSignal): Promise<OfferList> =>
    provider.offers(resources, { signal: inner, providerConfig, ...(explain === true && { explain }) });
  return withDeadline(clock, offersTimeoutMs, ask, tooLong, signal);
}

function whyExcluded(excluded: readonly RejectedCandidate[]): string {
  const nearest = excluded.toSorted((a, b) => a.offer.hourlyUsd - b.offer.hourlyUsd)[0];
  return nearest === undefined ? 'nothing there fits.' : `the cheapest, ${nearest.offer.instanceType}, ${nearest.why}.`;
}

/** A short description of a machine, for tables. */
export function describeOffer(offer: Offer, nodes = 1): string {
  const accelerator = offer.accelerator === undefined ? '' : `, ${offer.accelerator.name}:${offer.accelerator.count}`;
  return `${nodes}x(cpus=${offer.cpus}, mem=${shortGb(offer.memoryGb)}${accelerator})${offer.spot ? '[spot]' : ''}`;
}

interface AcceleratorSources {
  /** Their checks name accelerators: a node's label or a driver may have any name. */
  readonly providers: readonly Pick<ProviderState, 'check'>[];
  readonly tables: readonly string[];
}

interface UnknownAccelerator {
  readonly name: string;
  readonly nearest: readonly string[];
}

/** Requested accelerators that svc, the providers and the tables do not know, without duplicates. */
export function unknownAccelerators(
  choices: readonly Pick<Resources, 'accelerator'>[],
  sources: AcceleratorSources,
): readonly UnknownAccelerator[] {
  const names = [...new Set(choices.flatMap(({ accelerator }) => accelerator?.name ?? []))];
  return names.filter((name) => !isKnown(name, sources)).map((name) => ({ name, nearest: nearestAccelerators(name, sources.tables) }));
}

function isKnown(name: string, { providers, tables }: AcceleratorSources): boolean {
  if (canonicalAccelerator(name) !== undefined || tables.some((one) => isSameAccelerator(one, name))) return true;
  const found = providers.flatMap(({ check }) => check.details.map(([, text]) => text));
  return found.some((text) => isGpuNamed({ index: 0, name: text, memoryGb: undefined }, name));
}

/** One or two sentences. */
export function describeUnknown({ name, nearest }: UnknownAccelerator): string {
  const meant = nearest.length === 0 ? '' : ` Did you mean ${nearest.join(' or ')}?`;
  return `No provider offers an accelerator '${name}', and svc knows none of that name.${meant}`;
}
