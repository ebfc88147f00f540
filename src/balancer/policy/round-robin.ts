import type { Policy } from './policy.ts';

/** Each replica in turn, by id. It remembers the last id rather than a position, so that replicas that come and go don't make it skip others. */
export function createRoundRobin(): Policy {
  let lastId = Number.NEGATIVE_INFINITY;
  return {
    name: 'round_robin',
    pick(candidates) {
      const next = candidates.findIndex((candidate) => candidate.id > lastId);
      const index = next < 0 ? 0 : next;
      lastId = candidates[index]?.id ?? lastId;
      return index;
    },
  };
}
