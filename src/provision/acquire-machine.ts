import { placeName } from '../domain/place-name.ts';
import { kindOf, type OccupiedPlace, type PlaceableOffer, type PlacementFacts } from '../domain/placement.ts';
import { nextMove, type AskReason } from '../domain/placement/next-move.ts';
import { rankCandidates } from '../domain/placement/rank.ts';
import { nextAttemptAt, refusalOf } from '../domain/placement/refusals.ts';
import type { PlaceConfig, ResourceAlternatives } from '../domain/task.ts';
import type { MachineId, MachineSpec, Offer, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { fingerprint } from '../shared/fingerprint.ts';
import { askPlace, type Answer } from './ask-place.ts';
import { giveBack, waitUntilRunning } from './machine.ts';
import { surveyOffers, type MachineCandidate } from './offers.ts';
import type { PlaceState } from './places.ts';
import type { PlacementHistory } from './placement-history.ts';
import type { SearchStep } from './search-steps.ts';

/** What getting a machine needs. */
export interface MachineRequest {
  readonly alternatives: ResourceAlternatives;
  /** How many nodes it is to have; one when absent. */
  readonly nodes?: number;
  /** What the task says for places. */
  readonly placeConfig?: PlaceConfig;
  /** All places as they are now; asked anew in a search that lasts. */
  readonly places: () => Promise<readonly PlaceState[]>;
  readonly history: PlacementHistory;
  /** Where the service's other replicas are now. */
  occupied(): readonly OccupiedPlace[];
  /** What is wanted of the machine; it depends on the alternative of the resources that it is for. Tags get `svc-key`. */
  spec(candidate: MachineCandidate): MachineSpec;
  /** Unique to what the machine is for. Each offer is asked with a key that begins with it; see `askKey`. */
  readonly key: string;
  readonly clock: Clock;
  /** Records a step before the next one is taken. */
  step(step: SearchStep): Promise<void>;
  /** Aborts with the process: what is still to be given back after the search is given back until then. */
  readonly background: AbortSignal;
}

/** A machine that was accepted, and from where. */
export interface GivenMachine {
  readonly provider: Provider;
  readonly offer: PlaceableOffer;
  /** Index of the alternative of the resources that it is for; unknown for one that a process before this one was given. */
  readonly alternative?: number;
  readonly machineId: MachineId;
  /** Monotonic ms when it was asked for. */
  readonly askedAt: number;
}

/** A machine may take so long from being accepted until it runs, ms: large GPU machines take ten minutes. */
const bootLimitMs = 900_000;

/** Offers are collected anew after so long, ms: places get enabled, and prices change. */
const offersAgeMs = 60_000;

/** When no place offers anything, it is looked again after so long, ms. */
const nothingPauseMs = 15_000;

const bootRemedy = 'Mend what that names in the task; an image is its resources.image_id.';

/** The key for asking one kind of machine: the same kind is asked with the same key again after a crash, and gives no second machine. */
export function askKey(key: string, offer: Parameters<typeof kindOf>[0], round = 0): string {
  const base = `${key}-${fingerprint(kindOf(offer)).slice(0, 8)}`;
  return round === 0 ? base : `${base}-${round}`;
}

/**
 * Gets a machine that runs, from the best place that gives one: goes down the offers as places refuse, asks further ones while answers are slow,
 * begins again when the first of them may be asked again, and gives up machines that do not come up. `found` is one that a search before this
 * one was given. Ends only with a machine, a cancelled signal, or an error that no other place and no waiting would mend; whatever else was
 * or will be given is given back.
 */
export async function obtainMachine(request: MachineRequest, found: GivenMachine | undefined, signal: AbortSignal): Promise<GivenMachine> {
  const { clock, history } = request;
  const failures: BootFailures = { rounds: new Map(), hopeless: [] };
  let given = found;
  for (;;) {
    given ??= await acquireMachine(request, failures, signal);
    const { provider, offer, alternative, machineId, askedAt } = given;
    const onMessage = (message: string): Promise<void> => request.step({ type: 'booting', offer, machineId, message });
    const onDetail = (detail: string): Promise<void> => request.step({ type: 'detail', offer, machineId, detail });
    // Without its id, so that the same cause reads the same each time; the step has it.
    const name = `The machine at ${placeName(offer)}`;
    try {
      await waitUntilRunning(provider, machineId, clock, signal, { name, limitMs: bootLimitMs, onMessage, onDetail });
      history.started(offer, clock.monotonic() - askedAt);
      return given;
    } catch (error) {
      signal.throwIfAborted();
      if (!isBootFailure(error)) throw error;
      const reason = messageOf(error);
      const kind = kindOf(offer);
      failures.rounds.set(kind, (failures.rounds.get(kind) ?? 0) + 1);
      // What never runs there would not do so the next time either: this search goes elsewhere, or ends.
      if (error.code === 'SVC_BOOT_FAILED') failures.hopeless.push({ offer, image: imageOf(request, alternative), reason });
      // A place whose machines do not come up has none that are of use.
      else history.refused(offer, { kind: 'capacity', scope: 'zone', reason }, clock.now());
      await request.step({ type: 'lost', offer, machineId, reason });
      history.keepBusy(giveBack(provider, { id: machineId }, clock, request.background));
    }
    given = undefined;
  }
}

/** What came of machines that were given in a search. */
interface BootFailures {
  /** How many of each kind were given up: asking with the same key again would only bring back the old one. */
  readonly rounds: Map<string, number>;
  /** Regions where machines as they are wanted never run. Without an image, none of the alternatives does. */
  readonly hopeless: { readonly offer: PlaceableOffer; readonly image: string | undefined; readonly reason: string }[];
}

function imageOf({ alternatives }: MachineRequest, alternative: number | undefined): string | undefined {
  return alternative === undefined ? undefined : JSON.stringify(alternatives.choices[alternative]?.imageId ?? null);
}

function isBootFailure(error: unknown): error is SvcError {
  return error instanceof SvcError && (error.code === 'SVC_MACHINE_LOST' || error.code === 'SVC_BOOT_FAILED');
}

/** One search until a place has accepted. */
async function acquireMachine(request: MachineRequest, failures: BootFailures, signal: AbortSignal): Promise<GivenMachine> {
  const search = new Search(request, failures);
  try {
    return await search.run(signal);
  } finally {
    search.end();
  }
}

type AcceptedMachine = GivenMachine & { readonly offer: Offer };

/** What a question to a place has come to. */
type Outcome = { readonly given: AcceptedMachine } | { readonly error: unknown };

class Search {
  readonly #request: MachineRequest;
  readonly #failures: BootFailures;
  readonly #outcomes: Outcome[] = [];
  #places: readonly PlaceState[] = [];
  #candidates: readonly MachineCandidate[] = [];
  /** Why there are no candidates. */
  #nothing: readonly string[] = [];
  #collectedAt = Number.NEGATIVE_INFINITY;
  /** Until when everybody was told to wait, ms since the epoch. */
  #announced = 0;
  /** What was told as the last refusal. */
  #told: string | undefined;
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
      const move = nextMove(rankCandidates(this.#candidates, facts), key, {
        pending: history.pending,
        given: history.given(now),
        reopening: reopening(this.#candidates, facts, now),
        order: facts.order,
        now,
      });
      // Between the decision and the note of the ask nothing else runs, so that no two launches decide on the same.
      if (move.type === 'ask') void this.#ask(move.candidate, move.why);
      if (move.type === 'wait') await this.#pause(move.until === undefined ? undefined : move.until - now, signal);
      if (move.type === 'none') await this.#waitForRefusals(signal);
    }
  }

  /** What is given from now on is given back. */
  end(): void {
    this.#isOver = true;
    for (const outcome of this.#outcomes.splice(0)) if ('given' in outcome) this.#giveBack(outcome.given);
  }

  async #keep(given: AcceptedMachine): Promise<GivenMachine> {
    try {
      await this.#request.step({ type: 'given', offer: given.offer, machineId: given.machineId });
      return given;
    } catch (error) {
      this.#giveBack(given);
      throw error;
    }
  }

  async #collect(signal: AbortSignal): Promise<void> {
    const { alternatives, nodes, placeConfig, clock, places } = this.#request;
    if (clock.monotonic() - this.#collectedAt < offersAgeMs) return;
    this.#places = await places();
    const { candidates: found, reasons } = await surveyOffers(alternatives, this.#places, { clock, signal, nodes, placeConfig });
    const { hopeless } = this.#failures;
    const candidates = found.filter((candidate) => !this.#isHopeless(candidate));
    // Nowhere else is there anything to be had, and there it is in vain.
    if (candidates.length === 0 && hopeless.length > 0)
      throw new SvcError('SVC_BOOT_FAILED', [...hopeless.map(({ reason }) => reason), ...reasons].join(' '), { hint: bootRemedy });
    this.#candidates = candidates;
    this.#nothing = candidates.length === 0 ? reasons : [];
    // What is not there now may be soon: a place may have failed to answer, or its credentials be renewed.
    this.#collectedAt = candidates.length === 0 ? Number.NEGATIVE_INFINITY : clock.monotonic();
  }

  #isHopeless({ offer, alternative }: MachineCandidate): boolean {
    const image = imageOf(this.#request, alternative);
    return this.#failures.hopeless.some(
      (one) => one.offer.provider === offer.provider && one.offer.region === offer.region && (one.image ?? image) === image,
    );
  }

  #facts(): PlacementFacts {
    const { alternatives, history, clock } = this.#request;
    const { refusals, starts } = history.memory;
    return { order: alternatives.order, refusals, starts, occupied: [...this.#request.occupied(), ...history.asked], now: clock.now() };
  }

  /** Asks one place, from the intent to its answer; settles when the answer has been dealt with and never throws. */
  async #ask(candidate: MachineCandidate, why: AskReason): Promise<void> {
    const { clock, history, key, background } = this.#request;
    const { offer } = candidate;
    const askedAt = clock.monotonic();
    const ask = history.asking(key, offer, askedAt);
    try {
      const provider = this.#places.find(({ name }) => name === offer.provider)?.provider;
      if (provider === undefined) throw new SvcError('SVC_INTERNAL', `An offer names the place '${offer.provider}', which is not enabled.`);
      await this.#request.step({ type: 'asking', offer, why, of: this.#candidates.length });
      if (this.#isOver) return;
      const spec = this.#request.spec(candidate);
      const kindKey = askKey(key, offer, this.#failures.rounds.get(kindOf(offer)));
      const tagged = { ...spec, tags: { ...spec.tags, 'svc-key': kindKey } };
      const answer = await askPlace({ provider, offer, spec: tagged, key: kindKey }, clock, background);
      await this.#take(answer, { provider, offer, alternative: candidate.alternative, askedAt }, kindKey);
    } catch (error) {
      this.#outcomes.push({ error });
    } finally {
      ask.end();
    }
  }

  async #take(answer: Answer, asked: Omit<AcceptedMachine, 'machineId'>, key: string): Promise<void> {
    const { clock, history, background } = this.#request;
    const { provider, offer } = asked;
    if (answer.type === 'given') {
      const given = { ...asked, machineId: answer.machineId };
      history.gave(offer, clock.monotonic());
      // Only one is kept: from here on no other answer finds the search unfinished.
      if (this.#isOver || this.#outcomes.length > 0) return this.#giveBack(given);
      this.#outcomes.push({ given });
      return undefined;
    }
    if (answer.type === 'failed') {
      this.#outcomes.push({ error: answer.error });
      return undefined;
    }
    const { refused, unclear } = answer;
    history.refused(offer, refused, clock.now());
    if (unclear) history.keepBusy(giveBack(provider, { key }, clock, background));
    const until = refusalOf(offer, history.memory.refusals, clock.now())?.until ?? clock.now();
    if (this.#isOver) return undefined;
    await this.#request.step({ type: 'refused', offer, refused, until });
    this.#told = reasonOf(offer, refused.reason);
    return undefined;
  }

  #giveBack(given: AcceptedMachine): void {
    const { clock, history, background } = this.#request;
    const { provider, offer, machineId } = given;
    const away = async (): Promise<void> => {
      await giveBack(provider, { id: machineId }, clock, background);
      await this.#request.step({ type: 'surplus', offer, machineId });
    };
    history.keepBusy(away());
  }

  /** Until something is learned, an answer comes, or the time is over. */
  async #pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock, history } = this.#request;
    const enough = new AbortController();
    const either = AbortSignal.any([signal, enough.signal]);
    const waits = [history.change(either), ...(ms === undefined ? [] : [clock.sleep(ms, either)])];
    await Promise.race(waits);
    enough.abort();
  }

  /** Nothing may be asked and nothing is being asked: until the first refusal ends, or offers may have appeared. */
  async #waitForRefusals(signal: AbortSignal): Promise<void> {
    const { clock, history } = this.#request;
    const { refusals } = history.memory;
    const now = clock.now();
    const offers = this.#candidates.map(({ offer }) => offer);
    const until = nextAttemptAt(offers, refusals, now) ?? now + nothingPauseMs;
    if (now >= this.#announced) {
      this.#announced = until;
      const refused = offers.flatMap((offer) => {
        const refusal = refusalOf(offer, refusals, now);
        return refusal === undefined ? [] : [reasonOf(refusal.offer, refusal.reason)];
      });
      const reasons = [...new Set([...this.#nothing, ...refused])];
      // The refusal itself has said why, and until when.
      const isTold = reasons.length === 1 && reasons[0] === this.#told;
      this.#told = undefined;
      if (!isTold) await this.#request.step({ type: 'waiting', until, reasons });
    }
    await this.#pause(until - now, signal);
  }
}

function reasonOf(offer: Parameters<typeof placeName>[0], reason: string): string {
  return `${placeName(offer)}: ${reason}`;
}

/** Candidates that only have to be left alone for a moment because they were asked too often, with the monotonic time when that is over. */
function reopening(candidates: readonly MachineCandidate[], { refusals, now }: PlacementFacts, monotonic: number) {
  if (!refusals.some(({ kind, until }) => kind === 'throttled' && until > now)) return [];
  return candidates.flatMap((candidate) => {
    const refusal = refusalOf(candidate.offer, refusals, now);
    return refusal?.kind === 'throttled' ? [{ candidate, at: monotonic + refusal.until - now }] : [];
  });
}
