import { kindOf, type Candidate, type PlacementFacts } from '../placement.ts';
import { isPreferred, type Preference } from './rank.ts';
import { refusalOf } from './refusals.ts';

/** A request to a provider that has not been answered yet. Times are monotonic ms. */
export interface PendingAsk {
  /** Key of the launch that sent it. */
  readonly launch: string;
  readonly kind: string;
  readonly at: number;
}

/** What the launches of a service know about their common search. */
export interface SearchView<C extends Candidate = Candidate> {
  readonly pending: readonly PendingAsk[];
  /** How many machines each kind has returned since its last refusal; absent: none lately. */
  readonly given: ReadonlyMap<string, number>;
  /** Candidates whose backoff ends soon; monotonic ms. */
  readonly reopening: readonly { readonly candidate: C; readonly at: number }[];
  readonly preference: Preference;
  /** Monotonic ms. */
  readonly now: number;
}

/**
 * What a waiting launch waits for, besides its time. `own`: the answer to its own request. `turn`: any change, and all
 * launches of the same search that wait for it would decide the same. `change`: any change.
 */
export type AwaitedChange = 'own' | 'turn' | 'change';

/** Next step of a launch. `wait` without a time: for new information. `none`: no candidate to ask or await is left. */
type NextMove<C extends Candidate> =
  | { readonly type: 'ask'; readonly candidate: C; readonly why: AskReason }
  | { readonly type: 'wait'; readonly until: number | undefined; readonly for: AwaitedChange }
  | { readonly type: 'none' };

/** Why a candidate is asked: it is the best; another launch asks a better one; or an earlier request is slow. */
export type AskReason = 'best' | 'better-busy' | 'slow-answer';

/**
 * An unanswered request is slow after this time, ms: a launch may then also ask a dearer candidate. Most clouds report
 * within seconds whether they have a machine; some take a minute.
 */
export const patienceMs = 3_000;

/**
 * Concurrent requests per kind of machine: at most this many per machine it has returned, and at least this many.
 * Applies when all candidates are being asked, responses are slow, and the launch has no request of its own.
 */
const crowdAtSlow = 4;

/** Concurrent requests of one launch. Each may return a machine, and all but one are terminated. */
export const mostAsksOfLaunch = 5;

/**
 * The next step in the search of one launch. `ranked`: the candidates that may be asked, best first. Launches of a
 * service search together:
 * - One launch at a time asks for a kind until it has returned a machine, then twice as many as it has returned since.
 *   So launches do not flood an exhausted location, and a good one serves all of them within a few rounds.
 * - A launch waits up to `patienceMs` for an answer about a better candidate, or for the end of that one's backoff. It
 *   does not wait among equal candidates.
 * - When all candidates are being asked and answers are slow, more launches join in instead of idling.
 * - A launch may try as many further candidates as there are slow ones, and at least one. The search widens by
 *   doubling, only while answers are slow.
 */
export function nextMove<C extends Candidate>(ranked: readonly C[], launch: string, view: SearchView<C>): NextMove<C> {
  const { pending, given, reopening, preference, now } = view;
  const own = pending.filter((ask) => ask.launch === launch);
  if (ranked.length === 0 && own.length === 0) return { type: 'none' };
  const isYoung = ({ at }: PendingAsk): boolean => at + patienceMs > now;
  const youngOwn = own.filter(isYoung);
  const isAnswerDue = youngOwn.length >= Math.max(1, own.length - youngOwn.length);
  if (isAnswerDue) return { type: 'wait', until: Math.min(...youngOwn.map(({ at }) => at + patienceMs)), for: 'own' };
  if (own.length >= mostAsksOfLaunch) return { type: 'wait', until: undefined, for: 'own' };
  const asksOf = Map.groupBy(pending, ({ kind }) => kind);
  const asksAt = ({ offer }: C): number => asksOf.get(kindOf(offer))?.length ?? 0;
  const hasRoom = ({ offer }: C): boolean => {
    const kind = kindOf(offer);
    const asks = asksOf.get(kind) ?? [];
    return asks.length < Math.max(1, 2 * (given.get(kind) ?? 0)) && !own.some((ask) => ask.kind === kind);
  };
  const index = ranked.findIndex(hasRoom);
  const next = ranked[index];
  if (next === undefined) {
    // A launch without a request of its own joins a slow one instead of idling.
    if (own.length > 0) return { type: 'wait', until: undefined, for: 'change' };
    const slowOnes = ranked.filter(({ offer }) => {
      const asks = asksOf.get(kindOf(offer)) ?? [];
      return asks.length < crowdAtSlow * Math.max(1, given.get(kindOf(offer)) ?? 0) && !asks.some(isYoung);
    });
    const fewest = slowOnes.reduce<C | undefined>(
      (best, one) => (best === undefined || asksAt(one) < asksAt(best) ? one : best),
      undefined,
    );
    if (fewest !== undefined) return { type: 'ask', candidate: fewest, why: 'better-busy' };
    const ripe = pending.filter(isYoung).map(({ at }) => at + patienceMs);
    return { type: 'wait', until: ripe.length === 0 ? undefined : ripe.reduce((first, time) => Math.min(first, time)), for: 'turn' };
  }

  const youngBetter = ranked
    .slice(0, index)
    .filter((candidate) => isPreferred(candidate, next, preference))
    .flatMap(({ offer }) => asksOf.get(kindOf(offer)) ?? [])
    .filter(isYoung);
  const slow = pending.length - pending.filter(isYoung).length;
  const opening = reopening.filter(({ candidate, at }) => at - now <= patienceMs && isPreferred(candidate, next, preference));
  const mustWait = (youngBetter.length > 0 && youngBetter.length >= slow) || opening.length > 0;
  if (mustWait) {
    const ripe = [...[...youngOwn, ...youngBetter].map((ask) => ask.at + patienceMs), ...opening.map(({ at }) => at)];
    const until = ripe.reduce((first, time) => Math.min(first, time));
    return { type: 'wait', until, for: own.length > 0 ? 'change' : 'turn' };
  }
  return { type: 'ask', candidate: next, why: own.length > 0 ? 'slow-answer' : index > 0 ? 'better-busy' : 'best' };
}

/** Throttled candidates, each with the monotonic time at which throttling ends. */
export function reopeningOf<C extends Candidate>(
  candidates: readonly C[],
  { refusals, now }: Pick<PlacementFacts, 'refusals' | 'now'>,
  monotonic: number,
): SearchView<C>['reopening'] {
  if (!refusals.some(({ kind, until }) => kind === 'throttled' && until > now)) return [];
  return candidates.flatMap((candidate) => {
    const refusal = refusalOf(candidate.offer, refusals, now);
    return refusal?.kind === 'throttled' ? [{ candidate, at: monotonic + refusal.until - now }] : [];
  });
}
