import { type Candidate, type PlaceableOffer, type PlacementFacts, type Refusal, kindOf } from '../placement.ts';
import { isPreferred, orderCandidates, rankCandidates, medianOf, startClass } from './rank.ts';
import { refusalOf } from './refusals.ts';

/** Hours per month in price calculations: 365 days × 24 hours, divided by 12. */
export const hoursPerMonth = 730;

/** Why a candidate is chosen or not at this moment. */
export type Verdict =
  /** Numbers of the replicas that are placed on this candidate, counted from 1. */
  | { readonly type: 'chosen'; readonly replicas: readonly number[]; readonly because: ChoiceReason }
  | { readonly type: 'refused'; readonly until: number; readonly refusal: Refusal }
  /** An alternative that comes before this one has a machine. */
  | { readonly type: 'later-alternative' }
  | { readonly type: 'dearer'; readonly byUsd: number }
  /** A replica there is expected to be ready later, which matters while requests wait. */
  | { readonly type: 'later-ready'; readonly seconds: number }
  | { readonly type: 'slower'; readonly medianMs: number }
  /** As good as the chosen candidates: further replicas would be placed on it. */
  | { readonly type: 'equal' }
  /** The replicas of the plan use all its room, or it has none. */
  | { readonly type: 'full' };

/**
 * Why a candidate is chosen. `spread`: replicas are spread over equals. `zones`: a placer spreads spot replicas over zones.
 * `better-full`: better ones have no room.
 */
export type ChoiceReason = 'only' | 'best' | 'spread' | 'zones' | 'better-full';

/** A candidate and its verdict in the plan. */
export interface JudgedCandidate<C extends Candidate> {
  readonly candidate: C;
  readonly verdict: Verdict;
}

/**
 * The placement of `replicas` if they were launched now, and why other candidates are not chosen. All candidates, best
 * first, each kind at a location once. A launch starts its search at the first; the providers' answers are not known.
 * No location gets more replicas than the room it reports. Replicas that fit nowhere are not placed.
 */
export function planReplicaPlacement<C extends Candidate>(
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
    if (facts.placer !== undefined && one.offer.spot) return chosen.size > 1 ? 'zones' : 'best';
    if (best !== undefined && isWorse(one, best, facts)) return 'better-full';
    return isSpread ? 'spread' : 'best';
  };
  const verdictOf = (candidate: C): Verdict => {
    const numbers = chosen.get(candidate);
    if (numbers !== undefined) return { type: 'chosen', replicas: numbers, because: reasonFor(candidate) };
    const refusal = refusalOf(candidate.offer, facts.refusals, facts.now);
    if (refusal !== undefined) return { type: 'refused', until: refusal.until, refusal };
    if (!room.has(candidate)) return { type: 'full' };
    return best === undefined ? { type: 'equal' } : comparedTo(best, candidate, facts);
  };
  return ordered.map((candidate) => ({ candidate, verdict: verdictOf(candidate) }));
}

/** Numbers of the replicas placed on each candidate, as long as there is room; `allowed` is best first. */
function choose<C extends Candidate>(
  allowed: readonly C[],
  replicas: number,
  facts: PlacementFacts,
  room: RoomLeft,
): ReadonlyMap<C, readonly number[]> {
  const chosen = new Map<C, number[]>();
  const occupied = [...facts.occupied];
  const hasRoom = (one: C): boolean => room.has(one);
  // Start times and prices are the same for each replica. Only the spread and the remaining room change.
  let equals: readonly C[] = [];
  for (let replica = 1; replica <= replicas; replica += 1) {
    // A placer prefers zones without a replica to cheaper ones.
    equals = facts.placer === undefined ? equals.filter(hasRoom) : allowed.filter(hasRoom);
    if (equals.length === 0) equals = bestOf(allowed.filter(hasRoom), facts);
    const [choice] = orderCandidates(equals, { ...facts, occupied });
    if (choice === undefined) break;
    chosen.set(choice, [...(chosen.get(choice) ?? []), replica]);
    occupied.push(choice.offer);
    room.take(choice);
  }
  return chosen;
}

function bestOf<C extends Candidate>(ranked: readonly C[], facts: PlacementFacts): readonly C[] {
  const [best] = ranked;
  return best === undefined ? [] : ranked.filter((one) => !isWorse(one, best, facts));
}

/** One machine may satisfy two alternatives: it counts for the better, or the first, of them. */
function onceEach<C extends Candidate>(ordered: readonly C[]): readonly C[] {
  const seen = new Set<string>();
  return ordered.filter(({ offer }) => {
    const kind = kindOf(offer);
    return !seen.has(kind) && seen.add(kind) !== undefined;
  });
}

const isWorse = (one: Candidate, best: Candidate, facts: PlacementFacts): boolean => comparedTo(best, one, facts).type !== 'equal';

function comparedTo(best: Candidate, one: Candidate, { order, readySeconds, starts }: PlacementFacts): Verdict {
  if (isPreferred(best, one, { order, readySeconds })) {
    if (order === 'ordered' && best.alternative !== one.alternative) return { type: 'later-alternative' };
    const isDearer = isPreferred(best, one, { order: 'any' });
    return readySeconds !== undefined && !isDearer
      ? { type: 'later-ready', seconds: readySeconds(one.offer) }
      : { type: 'dearer', byUsd: one.offer.hourlyUsd - best.offer.hourlyUsd };
  }
  const median = ({ offer }: Candidate): number | undefined => medianOf(starts.find(({ kind }) => kind === kindOf(offer))?.took ?? []);
  const [own, least] = [median(one), median(best)];
  return own !== undefined && startClass(own) > startClass(least) ? { type: 'slower', medianMs: own } : { type: 'equal' };
}

/** Tolerance for rounding errors: three thirds must fit into one. */
const tolerance = 1e-9;

/**
 * Room that remains at each location; unlimited where none is reported. Machines of several sizes on the same nodes
 * share it: a machine of which three fit takes a third, also from other sizes.
 */
class RoomLeft {
  readonly #taken = new Map<string, number>();

  has({ offer }: Candidate): boolean {
    return offer.room === undefined || this.#takenOf(offer) + 1 / offer.room <= 1 + tolerance;
  }

  take({ offer }: Candidate): void {
    if (offer.room !== undefined) this.#taken.set(nodesOf(offer), this.#takenOf(offer) + 1 / offer.room);
  }

  #takenOf(offer: PlaceableOffer): number {
    return this.#taken.get(nodesOf(offer)) ?? 0;
  }
}

/** Key of the nodes that share room. Other accelerators and spot machines are on other nodes. */
function nodesOf({ provider, region, zone = '', accelerator, spot }: PlaceableOffer): string {
  return [provider, region, zone, accelerator?.name ?? '', spot ? 'spot' : ''].join('|');
}
