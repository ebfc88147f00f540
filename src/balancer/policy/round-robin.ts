import { pickLeastCost } from './least-cost.ts';
import type { Policy } from './policy.ts';

const equal = (): number => 0;
/** Among those that had no turn yet, the first by id. */
const keepFirst = (): number => 1;

/**
 * Each replica in turn, whatever its load: the one whose turn was longest ago. That is the same order in all threads, and replicas that come and go
 * don't make it skip others.
 */
export function createRoundRobin(): Policy {
  return { name: 'round_robin', pick: (candidates) => pickLeastCost(candidates, equal, keepFirst) };
}
