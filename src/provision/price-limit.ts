import type { MachineCandidate } from './offers.ts';
import type { SearchStep } from './search-steps.ts';

/** What the price limit of a service leaves for one more machine. US dollars per hour for all its nodes. */
export interface PriceLimit {
  readonly nodes: number;
  /** Infinite without a limit. */
  readonly mostUsd: number;
}

/** The candidates within the limit, and those above it. */
export function splitByPrice(
  candidates: readonly MachineCandidate[],
  { nodes, mostUsd }: PriceLimit,
): readonly [allowed: readonly MachineCandidate[], tooDear: readonly MachineCandidate[]] {
  const isAllowed = ({ offer }: MachineCandidate): boolean => offer.hourlyUsd * nodes <= mostUsd;
  return [candidates.filter(isAllowed), candidates.filter((candidate) => !isAllowed(candidate))];
}

/** The step that names the cheapest candidate above the limit; undefined when there is none. */
export function tooDearStep(tooDear: readonly MachineCandidate[], { nodes, mostUsd }: PriceLimit): SearchStep | undefined {
  const [cheapest] = tooDear.map(({ offer }) => offer).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  return cheapest && { type: 'too-dear', offer: cheapest, hourlyUsd: cheapest.hourlyUsd * nodes, mostUsd };
}
