import { kindOf, type Candidate, type PlacementFacts } from '../placement.ts';
import { isPreferred, orderCandidates, rankCandidates } from './rank.ts';
import { refusalOf } from './refusals.ts';
import { RoomLeft } from './room.ts';
import { medianOf, startClass } from './start-times.ts';

/** Hours that a month is reckoned with in prices: 365 days, divided by 12. */
export const hoursPerMonth = 730;

/** What speaks for a candidate, or against it, at this moment. */
export type Verdict =
  /** The replicas that are to be here, counted from 1. */
  | { readonly type: 'chosen'; readonly replicas: readonly number[]; readonly because: ChoiceReason }
  | { readonly type: 'refused'; readonly until: number; readonly reason: string }
  /** An alternative before its own one has a machine. */
  | { readonly type: 'later-alternative' }
  | { readonly type: 'dearer'; readonly byUsd: number }
  | { readonly type: 'slower'; readonly medianMs: number }
  /** As good as the chosen ones: more replicas would come here. */
  | { readonly type: 'equal' }
  /** What fits there is taken by the replicas of the plan, or none fits. */
  | { readonly type: 'full' };

/** Why it is chosen: there is nothing else; nothing is better; replicas are spread over this and what is as good; or what is better is full. */
export type ChoiceReason = 'only' | 'best' | 'spread' | 'better-full';

/** A candidate, and what became of it in the plan. */
export interface JudgedCandidate<C extends Candidate> {
  readonly candidate: C;
  readonly verdict: Verdict;
}

/**
 * Where so many replicas would be put now, and why not elsewhere: all candidates, best first, a kind of machine at a place once. The first one is
 * where the search of a launch begins; what places answer is not known beforehand. No place gets more than it says it has room for: the replicas that
 * fit nowhere are chosen for nothing.
 */
export function planPlaces<C extends Candidate>(
  candidates: readonly C[],
  replicas: number,
  facts: PlacementFacts,
): readonly JudgedCandidate<C>[] {
  const ordered = onceEach(orderCandidates(candidates, facts));
  const allowed = rankCandidates(ordered, facts);
  const [best] = allowed;
  const room = new RoomLeft();
  const chosen = choose(allowed, replicas, facts, room);
  const isSpread = [...chosen.keys()].filter((one) => best !== undefined && !isWorse(one, best, facts)).length > 1;
  const reasonFor = (one: C): ChoiceReason => {
    if (ordered.length === 1) return 'only';
    if (best !== undefined && isWorse(one, best, facts)) return 'better-full';
    return isSpread ? 'spread' : 'best';
  };
  const verdictOf = (candidate: C): Verdict => {
    const numbers = chosen.get(candidate);
    if (numbers !== undefined) return { type: 'chosen', replicas: numbers, because: reasonFor(candidate) };
    const refusal = refusalOf(candidate.offer, facts.refusals, facts.now);
    if (refusal !== undefined) return { type: 'refused', until: refusal.until, reason: refusal.reason };
    if (!room.has(candidate)) return { type: 'full' };
    return best === undefined ? { type: 'equal' } : comparedTo(best, candidate, facts);
  };
  return ordered.map((candidate) => ({ candidate, verdict: verdictOf(candidate) }));
}

/** The numbers of the replicas that each of them gets, as long as there is room; `allowed` is best first. */
function choose<C extends Candidate>(
  allowed: readonly C[],
  replicas: number,
  facts: PlacementFacts,
  room: RoomLeft,
): ReadonlyMap<C, readonly number[]> {
  const chosen = new Map<C, number[]>();
  const occupied = [...facts.occupied];
  const hasRoom = (one: C): boolean => room.has(one);
  // Start times and prices do not change from one replica to the next; only how they are spread does, and what room there is.
  let equals: readonly C[] = [];
  for (let replica = 1; replica <= replicas; replica += 1) {
    equals = equals.filter(hasRoom);
    if (equals.length === 0) equals = bestOf(allowed.filter(hasRoom), facts);
    const [choice] = orderCandidates(equals, { ...facts, occupied });
    if (choice === undefined) break;
    chosen.set(choice, [...(chosen.get(choice) ?? []), replica]);
    occupied.push(choice.offer);
    room.take(choice);
  }
  return chosen;
}

/** The first of them, and those that are as good. */
function bestOf<C extends Candidate>(ranked: readonly C[], facts: PlacementFacts): readonly C[] {
  const [best] = ranked;
  return best === undefined ? [] : ranked.filter((one) => !isWorse(one, best, facts));
}

/** Two alternatives may both be satisfied by one machine: it is then for the better, or the first, of them. */
function onceEach<C extends Candidate>(ordered: readonly C[]): readonly C[] {
  const seen = new Set<string>();
  return ordered.filter(({ offer }) => {
    const kind = kindOf(offer);
    return !seen.has(kind) && seen.add(kind) !== undefined;
  });
}

const isWorse = (one: Candidate, best: Candidate, facts: PlacementFacts): boolean => comparedTo(best, one, facts).type !== 'equal';

function comparedTo(best: Candidate, one: Candidate, { order, starts }: PlacementFacts): Verdict {
  if (isPreferred(best, one, order)) {
    return order === 'ordered' && best.alternative !== one.alternative
      ? { type: 'later-alternative' }
      : { type: 'dearer', byUsd: one.offer.hourlyUsd - best.offer.hourlyUsd };
  }
  const median = ({ offer }: Candidate): number | undefined => medianOf(starts.find(({ kind }) => kind === kindOf(offer))?.took ?? []);
  const [own, least] = [median(one), median(best)];
  return own !== undefined && startClass(own) > startClass(least) ? { type: 'slower', medianMs: own } : { type: 'equal' };
}
