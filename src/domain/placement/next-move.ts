import { kindOf, type Candidate, type PlacementFacts } from '../placement.ts';
import { isPreferred } from './rank.ts';

/** A place that was asked and has not answered yet. Times are monotonic ms. */
export interface PendingAsk {
  /** Whose search it belongs to. */
  readonly launch: string;
  readonly kind: string;
  readonly at: number;
}

/** What the launches of a service know together of the places they ask. */
export interface SearchView<C extends Candidate = Candidate> {
  readonly pending: readonly PendingAsk[];
  /** How many machines each kind gave since it last refused; absent: none lately. */
  readonly given: ReadonlyMap<string, number>;
  /** Candidates that may be asked for again soon, when the place has had its pause; monotonic ms. */
  readonly reopening: readonly { readonly candidate: C; readonly at: number }[];
  readonly order: PlacementFacts['order'];
  /** Monotonic ms. */
  readonly now: number;
}

/** What a launch does next. `wait` without a time is until something is learned; `none`: there is nobody left to ask or to wait for. */
export type NextMove<C extends Candidate> =
  | { readonly type: 'ask'; readonly candidate: C; readonly why: AskReason }
  | { readonly type: 'wait'; readonly until: number | undefined }
  | { readonly type: 'none' };

/** Why a place is asked: it is the best that may be asked; a better one is being asked by another launch; or one that was asked is slow. */
export type AskReason = 'best' | 'better-busy' | 'slow-answer';

/**
 * Clouds that have machines, or know that they have none, mostly say so within seconds; others take a minute. A place that has not answered
 * for so long, ms, no longer keeps a launch from asking a dearer one as well.
 */
export const patienceMs = 3_000;

/**
 * So many launches ask a kind of machine at once, for each that it gave and at least, when everything is being asked, answers are slow and a launch
 * would have nothing else to do.
 */
const crowdAtSlow = 4;

/** Places that one launch asks at the same time: each may give a machine, and all but one are given back. */
export const mostAsksOfLaunch = 5;

/**
 * The next move in the search of one launch, given the candidates that may be asked, best first. Launches of a service search together:
 *
 * - A kind of machine is asked for by one launch at a time until it has given one, then by twice as many as it gave since: an exhausted place is
 *   not asked by all at once, and a good one serves all within a few rounds.
 * - Who finds a better place being asked waits for its answer, at most `patienceMs`; among equals nobody waits.
 * - Where everything is being asked and answers are slow, more launches join in rather than standing idle.
 * - A better place that only wants a pause of as much is waited for as well.
 * - As many further places may be tried as there are slow ones, and at least one: the search widens by doubling, only while answers are slow.
 */
export function nextMove<C extends Candidate>(ranked: readonly C[], launch: string, view: SearchView<C>): NextMove<C> {
  const { pending, given, reopening, order, now } = view;
  const own = pending.filter((ask) => ask.launch === launch);
  if (ranked.length === 0 && own.length === 0) return { type: 'none' };
  if (own.length >= mostAsksOfLaunch) return { type: 'wait', until: undefined };
  const asksOf = Map.groupBy(pending, ({ kind }) => kind);
  const isYoung = ({ at }: PendingAsk): boolean => at + patienceMs > now;
  const asksAt = ({ offer }: C): number => asksOf.get(kindOf(offer))?.length ?? 0;
  const hasRoom = ({ offer }: C): boolean => {
    const kind = kindOf(offer);
    const asks = asksOf.get(kind) ?? [];
    return asks.length < Math.max(1, 2 * (given.get(kind) ?? 0)) && !own.some((ask) => ask.kind === kind);
  };
  const index = ranked.findIndex(hasRoom);
  const next = ranked[index];
  if (next === undefined) {
    // Everything is being asked, and this launch would stand idle.
    if (own.length > 0) return { type: 'wait', until: undefined };
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
    return { type: 'wait', until: ripe.length === 0 ? undefined : ripe.reduce((first, time) => Math.min(first, time)) };
  }

  const youngOwn = own.filter(isYoung);
  const youngBetter = ranked
    .slice(0, index)
    .filter((candidate) => isPreferred(candidate, next, order))
    .flatMap(({ offer }) => asksOf.get(kindOf(offer)) ?? [])
    .filter(isYoung);
  const slow = pending.length - pending.filter(isYoung).length;
  const opening = reopening.filter(({ candidate, at }) => at - now <= patienceMs && isPreferred(candidate, next, order));
  const mustWait =
    youngOwn.length >= Math.max(1, own.length - youngOwn.length) ||
    (youngBetter.length > 0 && youngBetter.length >= slow) ||
    opening.length > 0;
  if (mustWait) {
    const ripe = [...[...youngOwn, ...youngBetter].map((ask) => ask.at + patienceMs), ...opening.map(({ at }) => at)];
    return { type: 'wait', until: ripe.reduce((first, time) => Math.min(first, time)) };
  }
  return { type: 'ask', candidate: next, why: own.length > 0 ? 'slow-answer' : index > 0 ? 'better-busy' : 'best' };
}
