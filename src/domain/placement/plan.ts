import { kindOf, type Candidate, type PlacementFacts } from '../placement.ts';
import { isPreferred, orderCandidates, rankCandidates } from './rank.ts';
import { refusalOf } from './refusals.ts';
import { medianOf, startClass } from './start-times.ts';

/** Hours that a month is reckoned with in prices: 365 days, divided by 12. */
export const hoursPerMonth = 730;

/** What speaks for a candidate, or against it, at this moment. */
export type Verdict =
  /** The replicas that are to be here, counted from 1. */
  | { readonly type: 'chosen'; readonly replicas: readonly number[] }
  | { readonly type: 'refused'; readonly until: number; readonly reason: string }
  /** An alternative before its own one has a machine. */
  | { readonly type: 'later-alternative' }
  | { readonly type: 'dearer'; readonly byUsd: number }
  | { readonly type: 'slower'; readonly medianMs: number }
  /** As good as the chosen ones: more replicas would come here. */
  | { readonly type: 'equal' };

/** A candidate, and what became of it in the plan. */
export interface JudgedCandidate<C extends Candidate> {
  readonly candidate: C;
  readonly verdict: Verdict;
}

/**
 * Where so many replicas would be put now, and why not elsewhere: all candidates, best first, a kind of machine at a place once. The first one is
 * where the search of a launch begins; what places answer is not known beforehand.
 */
export function planPlaces<C extends Candidate>(
  candidates: readonly C[],
  replicas: number,
  facts: PlacementFacts,
): readonly JudgedCandidate<C>[] {
  const ordered = onceEach(orderCandidates(candidates, facts));
  const allowed = rankCandidates(ordered, facts);
  const [best] = allowed;
  const chosen = new Map<C, number[]>();
  if (best !== undefined) {
    // Start times and prices do not change from one replica to the next; only how they are spread does.
    const equals = allowed.filter((one) => !isWorse(one, best, facts));
    const occupied = [...facts.occupied];
    for (let replica = 1; replica <= replicas; replica += 1) {
      const choice = orderCandidates(equals, { ...facts, occupied })[0] ?? best;
      chosen.set(choice, [...(chosen.get(choice) ?? []), replica]);
      occupied.push(choice.offer);
    }
  }
  const verdictOf = (candidate: C): Verdict => {
    const numbers = chosen.get(candidate);
    if (numbers !== undefined) return { type: 'chosen', replicas: numbers };
    const refusal = refusalOf(candidate.offer, facts.refusals, facts.now);
    if (refusal !== undefined) return { type: 'refused', until: refusal.until, reason: refusal.reason };
    return best === undefined ? { type: 'equal' } : comparedTo(best, candidate, facts);
  };
  return ordered.map((candidate) => ({ candidate, verdict: verdictOf(candidate) }));
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
