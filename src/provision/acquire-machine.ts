import { locationName } from '../domain/location-name.ts';
import type { OccupiedLocation, PlaceableOffer, PlacementFacts, Refusal } from '../domain/placement.ts';
import { nextMove, reopeningOf, type AskReason, type AwaitedChange } from '../domain/placement/next-move.ts';
import { rankCandidates } from '../domain/placement/rank.ts';
import { nextAttemptAt, refusalOf } from '../domain/placement/refusals.ts';
import { memoryFor } from '../domain/spot/known-markets.ts';
import type { ProviderConfig, ResourceAlternatives } from '../domain/task.ts';
import type { MachineId, MachineSpec, Offer, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { ended, linkedController } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { AskRounds } from './ask-keys.ts';
import { requestMachine, type Answer } from './request-machine.ts';
import { isBootFailure, lateRefusal, releaseMachine, waitUntilRunning } from './machine.ts';
import { surveyOffers, type MachineCandidate } from './offers.ts';
import type { ProviderState } from './providers.ts';
import type { PlacementHistory } from './placement-history.ts';
import { splitByPrice, tooDearStep, type PriceLimit } from './price-limit.ts';
import { describeStep, type SearchStep } from './search-steps.ts';

/** Input of `obtainMachine`. */
export interface MachineRequest {
  readonly alternatives: ResourceAlternatives;
  /** Default: 1. */
  readonly nodes?: number;
  readonly providerConfig?: ProviderConfig;
  readonly placer?: PlacementFacts['placer'];
  readonly zoneOrder?: PlacementFacts['zoneOrder'];
  /** Under which the history remembers the offers; see `searchOf`. Absent: it does not. */
  readonly search?: string;
  /** Equal for requests with the same candidates: a change wakes one search of each group. Default: `search`. */
  readonly group?: string;
  /** Asked before each step of the search: it changes when requests begin or cease to wait. */
  readonly readySeconds?: () => PlacementFacts['readySeconds'];
  readonly providers: () => Promise<readonly ProviderState[]>;
  readonly history: PlacementHistory;
  occupied(): readonly OccupiedLocation[];
  /** The highest price of all nodes that a limit allows now, US dollars per hour. Absent, or undefined: no limit. */
  readonly mostUsd?: () => number | undefined;
  /** Specification for a candidate's resource alternative. The search adds the tag `svc-key`. */
  spec(candidate: MachineCandidate): MachineSpec;
  /** Unique per purpose of the machine (a replica). Prefix of the idempotency key of each ask; see `askKey`. */
  readonly key: string;
  readonly clock: Clock;
  /** Records a step. The next action starts only after the record is written. */
  step(step: SearchStep): Promise<void>;
  /** Aborts with the process. Until then surplus machines are terminated, also after the search has ended. */
  readonly background: AbortSignal;
}

/** An accepted machine, with its provider and offer. */
export interface GivenMachine {
  readonly provider: Provider;
  readonly offer: PlaceableOffer;
  /** Index of the resource alternative that the machine is for. Undefined: an earlier process received the machine. */
  readonly alternative?: number;
  readonly machineId: MachineId;
  /** Monotonic time of the ask, ms. */
  readonly askedAt: number;
}

/** Limit from acceptance until the machine runs, ms: large GPU machines take ten minutes. */
const bootLimitMs = 900_000;

/** Older offers are collected again, ms: providers get enabled, and prices change. */
const offersAgeMs = 60_000;

/** Delay before the next survey when no provider has an offer, and before a price limit is compared again, ms. */
const nothingPauseMs = 15_000;

const bootRemedy = 'Correct what that names in the task; an image is its resources.image_id.';

/**
 * Returns a running machine from the best offer that succeeds. The search takes the next offer when a provider refuses,
 * asks further offers while responses are slow, and starts again when the first refusal ends. It terminates machines
 * that do not come up, and every other machine that it receives, also later. `found` is a machine that an earlier
 * search received. The search ends only with a machine, an aborted signal, or an error that neither another provider
 * nor waiting can fix.
 */
export async function obtainMachine(request: MachineRequest, found: GivenMachine | undefined, signal: AbortSignal): Promise<GivenMachine> {
  const { clock, history } = request;
  const failures: BootFailures = { rounds: new AskRounds(), hopeless: [] };
  let given = found;
  for (;;) {
    given ??= await acquireMachine(request, failures, signal);
    const { provider, offer, alternative, machineId, askedAt } = given;
    const onMessage = (message: string): Promise<void> => request.step({ type: 'booting', offer, machineId, message });
    const onDetail = (detail: string): Promise<void> => request.step({ type: 'detail', offer, machineId, detail });
    // Without the machine's id, so that equal causes give equal texts. The step has the id.
    const name = `The machine at ${locationName(offer)}`;
    try {
      await waitUntilRunning(provider, machineId, clock, signal, { name, limitMs: bootLimitMs, onMessage, onDetail });
      history.started(offer, clock.monotonic() - askedAt);
      return given;
    } catch (error) {
      // A retry in that region would fail the same way. The search excludes the region, or ends.
      const isHopeless = error instanceof SvcError && error.code === 'SVC_BOOT_FAILED';
      history.trialEnded(request.key, offer, clock.now());
      signal.throwIfAborted();
      if (!isBootFailure(error)) throw error;
      const reason = messageOf(error);
      failures.rounds.next(offer);
      if (isHopeless) failures.hopeless.push({ offer, image: imageOf(request, alternative), reason });
      else history.refusedLate(offer, lateRefusal(error), clock.now() - (clock.monotonic() - askedAt), clock.now());
      const refusal = isHopeless ? undefined : refusalOf(offer, history.memory.refusals, clock.now());
      const refused = refusal && { kind: lateRefusal(error).kind, until: refusal.until };
      await request.step({ type: 'lost', offer, machineId, reason, ...(refused && { refused }) });
      history.keepBusy(releaseMachine(provider, { id: machineId }, clock, request.background));
    }
    given = undefined;
  }
}

interface BootFailures {
  readonly rounds: AskRounds;
  /** Regions where the requested machine never runs. `image` undefined: this holds for all alternatives. */
  readonly hopeless: { readonly offer: PlaceableOffer; readonly image: string | undefined; readonly reason: string }[];
}

function imageOf({ alternatives }: MachineRequest, alternative: number | undefined): string | undefined {
  return alternative === undefined ? undefined : JSON.stringify(alternatives.choices[alternative]?.imageId ?? null);
}

async function acquireMachine(request: MachineRequest, failures: BootFailures, signal: AbortSignal): Promise<GivenMachine> {
  const search = new Search(request, failures);
  try {
    return await search.run(signal);
  } finally {
    search.end();
  }
}

type AcceptedMachine = GivenMachine & { readonly offer: Offer };

type Outcome = { readonly given: AcceptedMachine } | { readonly error: unknown };

class Search {
  readonly #request: MachineRequest;
  readonly #failures: BootFailures;
  /** Ends the release of machines that an unclear ask may have made, by key. */
  readonly #unclear = new Map<string, AbortController>();
  readonly #outcomes: Outcome[] = [];
  #providers: readonly ProviderState[] = [];
  #candidates: readonly MachineCandidate[] = [];
  #nothing: readonly string[] = [];
  #collectedAt = Number.NEGATIVE_INFINITY;
  /** A `waiting` step was recorded for the time until then, ms since the epoch. */
  #announced = 0;
  #reported: string | undefined;
  /** The text of the last `too-dear` step, unless another step explained the wait since. */
  #tooDear: string | undefined;
  /** Ends the holds on prices of machines that this search accepted. */
  readonly #releases: (() => void)[] = [];
  #isOver = false;

  constructor(request: MachineRequest, failures: BootFailures) {
    this.#request = request;
    this.#failures = failures;
  }

  async run(signal: AbortSignal): Promise<GivenMachine> {
    const { clock, history, key } = this.#request;
    for (;;) {
      signal.throwIfAborted();
      const outcome = this.#outcomes.shift();
      if (outcome !== undefined) {
        if ('error' in outcome) throw outcome.error;
        return await this.#keep(outcome.given);
      }
      await this.#collect(signal);
      const facts = this.#facts();
      const now = clock.monotonic();
      const limit = this.#priceLimit();
      const [allowed, tooDear] = splitByPrice(this.#candidates, limit);
      const move = nextMove(rankCandidates(allowed, facts), key, {
        pending: history.pending,
        given: history.given(now),
        reopening: reopeningOf(allowed, facts, now),
        preference: facts,
        now,
      });
      // No await between the decision and `history.asking`: two launches must not choose the same offer.
      if (move.type === 'ask') void this.#ask(move.candidate, move.why);
      // Without this, the others would not learn of the change that this search had its turn for.
      if (move.type !== 'wait') history.passTurn(this.#group);
      if (move.type === 'wait') await this.#pause(move.until === undefined ? undefined : move.until - now, move.for, signal);
      if (move.type === 'none') await this.#waitForRefusals(tooDear, limit, signal);
    }
  }

  end(): void {
    this.#isOver = true;
    this.#request.history.passTurn(this.#group);
    for (const release of this.#releases.splice(0)) release();
    for (const outcome of this.#outcomes.splice(0)) if ('given' in outcome) this.#releaseMachine(outcome.given);
  }

  async #keep(given: AcceptedMachine): Promise<GivenMachine> {
    try {
      await this.#request.step({ type: 'given', offer: given.offer, machineId: given.machineId });
      return given;
    } catch (error) {
      this.#releaseMachine(given);
      throw error;
    }
  }

  async #collect(signal: AbortSignal): Promise<void> {
    const { alternatives, nodes, providerConfig, clock, providers, history, search } = this.#request;
    if (clock.monotonic() - this.#collectedAt < offersAgeMs) return;
    this.#providers = await providers();
    const { candidates: found, reasons } = await surveyOffers(alternatives, this.#providers, {
      clock,
      signal,
      nodes,
      providerConfig,
    });
    const { hopeless } = this.#failures;
    const candidates = found.filter((candidate) => !this.#isHopeless(candidate));
    // No other candidate exists, and the excluded regions would fail again.
    if (candidates.length === 0 && hopeless.length > 0)
      throw new SvcError('SVC_BOOT_FAILED', [...hopeless.map(({ reason }) => reason), ...reasons].join(' '), { hint: bootRemedy });
    this.#candidates = candidates;
    if (search !== undefined)
      history.found(
        search,
        candidates.map(({ offer }) => offer),
      );
    this.#nothing = candidates.length === 0 ? reasons : [];
    // An empty result is not cached: a provider may have failed to answer, or its credentials may be renewed.
    this.#collectedAt = candidates.length === 0 ? Number.NEGATIVE_INFINITY : clock.monotonic();
  }

  #isHopeless({ offer, alternative }: MachineCandidate): boolean {
    const image = imageOf(this.#request, alternative);
    return this.#failures.hopeless.some(
      (one) => one.offer.provider === offer.provider && one.offer.region === offer.region && (one.image ?? image) === image,
    );
  }

  /** Asked before each step of the search: it changes with each launch and end. */
  #priceLimit(): PriceLimit {
    const { nodes = 1, mostUsd } = this.#request;
    return { nodes, mostUsd: mostUsd?.() ?? Number.POSITIVE_INFINITY };
  }

  #facts(): PlacementFacts {
    const { alternatives, history, clock, placer, zoneOrder, readySeconds, search = '' } = this.#request;
    const occupied = [...this.#request.occupied(), ...history.asked];
    const known = { ...memoryFor(history.memory, search), occupied, now: clock.now() };
    return { ...known, order: alternatives.order, placer, zoneOrder, readySeconds: readySeconds?.() };
  }

  /** Sends one ask, from the intent to the processed answer. Never throws. */
  async #ask(candidate: MachineCandidate, why: AskReason): Promise<void> {
    const { clock, history, key, background } = this.#request;
    const { offer } = candidate;
    const askedAt = clock.monotonic();
    const ask = history.asking(key, offer, askedAt, clock.now());
    const release = history.hold(key, offer.hourlyUsd * (this.#request.nodes ?? 1));
    let isKept = false;
    try {
      const provider = this.#providers.find(({ name }) => name === offer.provider)?.provider;
      if (provider === undefined)
        throw new SvcError('SVC_INTERNAL', `An offer names the provider '${offer.provider}', which is not enabled.`);
      await this.#request.step({ type: 'asking', offer, why, of: this.#candidates.length });
      if (this.#isOver) return history.trialEnded(key, offer, clock.now());
      const spec = this.#request.spec(candidate);
      const kindKey = this.#failures.rounds.keyOf(key, offer);
      // The repeated ask gets the machine of the unclear one, so nothing may release it any more.
      this.#unclear.get(kindKey)?.abort();
      const tagged = { ...spec, tags: { ...spec.tags, 'svc-key': kindKey } };
      const answer = await requestMachine({ provider, offer, spec: tagged, key: kindKey }, clock, background);
      isKept = await this.#take(answer, { provider, offer, alternative: candidate.alternative, askedAt }, kindKey);
    } catch (error) {
      history.trialEnded(key, offer, clock.now());
      this.#outcomes.push({ error });
    } finally {
      ask.end();
      if (isKept && !this.#isOver) this.#releases.push(release);
      else release();
    }
  }

  /** Returns whether the search has the machine. */
  async #take(answer: Answer, asked: Omit<AcceptedMachine, 'machineId'>, kindKey: string): Promise<boolean> {
    const { clock, history, key, background } = this.#request;
    const { provider, offer } = asked;
    if (answer.type === 'given') {
      const given = { ...asked, machineId: answer.machineId };
      history.gave(offer, clock.monotonic());
      // The search keeps one machine.
      const isKept = !this.#isOver && this.#outcomes.length === 0;
      if (isKept) this.#outcomes.push({ given });
      else this.#releaseMachine(given);
      return isKept;
    }
    if (answer.type === 'failed') {
      history.trialEnded(key, offer, clock.now());
      this.#outcomes.push({ error: answer.error });
      return false;
    }
    const { refused, unclear } = answer;
    if (!unclear) history.trialEnded(key, offer, clock.now());
    history.refused(offer, refused, clock.now());
    if (unclear) {
      const { controller, unlink } = linkedController(background);
      this.#unclear.set(kindKey, controller);
      history.keepBusy(releaseMachine(provider, { key: kindKey }, clock, controller.signal).finally(unlink));
    }
    const until = refusalOf(offer, history.memory.refusals, clock.now())?.until ?? clock.now();
    if (this.#isOver) return false;
    await this.#request.step({ type: 'refused', offer, refused, until });
    this.#reported = reasonOf(offer, refused.reason);
    this.#tooDear = undefined;
    return false;
  }

  #releaseMachine(given: AcceptedMachine): void {
    const { clock, history, key, background } = this.#request;
    const { provider, offer, machineId } = given;
    history.trialEnded(key, offer, clock.now());
    const release = async (): Promise<void> => {
      await releaseMachine(provider, { id: machineId }, clock, background);
      await this.#request.step({ type: 'surplus', offer, machineId });
    };
    history.keepBusy(release());
  }

  /** A launch whose machines failed to boot may exclude candidates of its group. */
  get #group(): string {
    const { search = '', group = search, key } = this.#request;
    return this.#failures.rounds.areFirst ? group : `${group} ${key}`;
  }

  async #pause(ms: number | undefined, awaited: AwaitedChange, signal: AbortSignal, since?: number): Promise<void> {
    const { clock, history, key } = this.#request;
    const { controller: enough, unlink } = linkedController(signal);
    this.#watchQuotas(enough.signal);
    const waits = [
      history.change({ launch: key, group: this.#group, for: awaited }, enough.signal, since),
      ...(ms === undefined ? [] : [clock.sleep(ms, enough.signal)]),
    ];
    await Promise.race(waits);
    unlink();
    enough.abort(ended);
  }

  /** When a watched quota has room again, the refusals that it caused end. Some providers cannot watch quotas. */
  #watchQuotas(signal: AbortSignal): void {
    const { clock, history } = this.#request;
    const blocked = history.memory.refusals.filter((one) => isOfNamespace(one) && one.until > clock.now());
    for (const [region, [refusal]] of Map.groupBy(blocked, ({ offer }) => offer.region)) {
      const provider = this.#providers.find(({ name }) => name === refusal?.offer.provider)?.provider;
      const isFreed = (one: Refusal): boolean => isOfNamespace(one) && one.offer.provider === provider?.name && one.offer.region === region;
      provider?.watchQuota?.(region, () => history.endRefusals(isFreed, clock.now()), signal);
    }
  }

  /**
   * For the case that no ask is allowed or pending: waits until the first refusal ends, new offers may exist, or the limit
   * may allow more. `dearer`: the candidates above the limit.
   */
  async #waitForRefusals(dearer: readonly MachineCandidate[], limit: PriceLimit, signal: AbortSignal): Promise<void> {
    const { clock, history } = this.#request;
    // Changes during the writes below count.
    const { changes } = history;
    const { refusals } = history.memory;
    const now = clock.now();
    const tooDear = dearer.filter(({ offer }) => refusalOf(offer, refusals, now) === undefined);
    const step = tooDearStep(tooDear, limit);
    const text = step && describeStep(step);
    const above = new Set(tooDear);
    const offers = this.#candidates.filter((candidate) => !above.has(candidate)).map(({ offer }) => offer);
    const until = nextAttemptAt(offers, refusals, now) ?? now + nothingPauseMs;
    if (now >= this.#announced && (offers.length > 0 || step === undefined)) {
      this.#announced = until;
      const refused = offers.flatMap((offer) => {
        const refusal = refusalOf(offer, refusals, now);
        return refusal === undefined ? [] : [reasonOf(refusal.offer, refusal.reason)];
      });
      const reasons = [...new Set([...this.#nothing, ...refused])];
      // The `refused` step already has the reason and the time.
      const isReported = reasons.length === 1 && reasons[0] === this.#reported;
      this.#reported = undefined;
      if (!isReported) await this.#request.step({ type: 'waiting', until, reasons });
      this.#tooDear = undefined;
    }
    if (step !== undefined && text !== this.#tooDear) await this.#request.step(step);
    this.#tooDear = text;
    await this.#pause((step === undefined ? until : Math.min(until, now + nothingPauseMs)) - now, 'turn', signal, changes);
  }
}

const isOfNamespace = ({ kind, scope }: Refusal): boolean => kind === 'quota' && scope === 'namespace';

function reasonOf(offer: Parameters<typeof locationName>[0], reason: string): string {
  return `${locationName(offer)}: ${reason}`;
}
