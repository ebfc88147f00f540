/** What became of the requests at one replica, counted while the endpoint set has several versions. */
export interface ReplicaOutcomes {
  /** Attempts that the replica answered or failed. Includes `errors`. */
  readonly responses: number;
  /**
   * Replies of 500 and above, and attempts that the replica failed: refused, reset, cut off, timed out. Not: replies
   * below 500, clients that disconnect, an idle connection that the replica closed.
   */
  readonly errors: number;
  /**
   * Replies by the time from the sending of the request to the first byte, per bucket: `firstByteLimitsMs`, and last
   * those above. Failed attempts without a reply are in none.
   */
  readonly firstByteCounts: readonly number[];
  /**
   * Attempts that were still without a first byte at each of `waitLimitsMs`, counted at that age: requests that hang are
   * known before they end. Older balancers omit it.
   */
  readonly waitCounts?: readonly number[];
}

/** Upper limits, ms, of the buckets of `firstByteCounts`: from 1 ms to 623 s in steps of 2^(1/4). */
export const firstByteLimitsMs: readonly number[] = Array.from({ length: 78 }, (_, step) => 2 ** (step / 4));

/**
 * Where times to first byte are divided into levels: after 1 s, 4.1 s, 16 s, 66 s and 262 s. Each is the index of the
 * last bucket of its level. The balancer looks at open requests about twice a second, so the first one is no shorter.
 */
export const levelEnds: readonly number[] = [40, 48, 56, 64, 72];

/** Ages, ms, at which open requests are counted: the end of each level, and one bucket later. */
export const waitLimitsMs: readonly number[] = levelEnds.flatMap((end) => [2 ** (end / 4), 2 ** ((end + 1) / 4)]);

/** By replica id. */
export type Outcomes = Readonly<Record<string, ReplicaOutcomes>>;

const nothing: ReplicaOutcomes = { responses: 0, errors: 0, firstByteCounts: [] };

/** The sum of both, for all replicas of either. */
export function addOutcomes(one: Outcomes, other: Outcomes): Outcomes {
  const sums = Object.entries(other).map(([id, more]) => [id, combine(one[id] ?? nothing, more, (a, b) => a + b)]);
  return { ...one, ...Object.fromEntries(sums) };
}

/** What was counted after `before`, for the replicas of `now` whose counts grew. */
export function outcomesSince(before: Outcomes, now: Outcomes): Outcomes {
  const changes = Object.entries(now).map(
    ([id, count]) => [id, combine(count, before[id] ?? nothing, (a, b) => Math.max(0, a - b))] as const,
  );
  return Object.fromEntries(changes.filter(([, change]) => countedIn(change) > 0));
}

/** A number that grows with each count of a replica: 0 when nothing was counted. */
export function countedIn({ responses, errors, waitCounts = [] }: ReplicaOutcomes): number {
  return waitCounts.reduce((sum, count) => sum + count, responses + errors);
}

/** Maximum of gone replicas whose outcomes are kept: more than a canary loses before it is rejected. */
const mostGone = 100;

/** Without those gone replicas that are the oldest of many. `living`: ids of replicas that are kept in any case. */
export function boundOutcomes(outcomes: Outcomes, living: ReadonlySet<string>): Outcomes {
  const gone = Object.keys(outcomes).filter((id) => !living.has(id));
  if (gone.length <= mostGone) return outcomes;
  const newest = new Set(gone.toSorted((a, b) => Number(b) - Number(a)).slice(0, mostGone));
  return Object.fromEntries(Object.entries(outcomes).filter(([id]) => living.has(id) || newest.has(id)));
}

function combine(a: ReplicaOutcomes, b: ReplicaOutcomes, how: (a: number, b: number) => number): ReplicaOutcomes {
  const all = (one: readonly number[] = [], other: readonly number[] = []): readonly number[] =>
    Array.from({ length: Math.max(one.length, other.length) }, (_, index) => how(one[index] ?? 0, other[index] ?? 0));
  const waitCounts = all(a.waitCounts, b.waitCounts);
  return {
    responses: how(a.responses, b.responses),
    errors: how(a.errors, b.errors),
    firstByteCounts: all(a.firstByteCounts, b.firstByteCounts),
    ...(waitCounts.length > 0 && { waitCounts }),
  };
}
