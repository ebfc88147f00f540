import type { LoadBalancingPolicy } from '../../domain/task.ts';
import type { Random } from '../../shared/random.ts';

/** A replica as a policy sees it. */
export interface Candidate {
  readonly id: number;
  /** Requests that it has at this moment, exact over all threads. */
  readonly inFlight: number;
  /** Relative capacity, > 0. */
  readonly weight: number;
  /** Choices, of all candidates and in all threads, since it was last taken; 2^32 when it never was. */
  readonly sinceChoice: number;
}

/** Chooses a replica for one request. It keeps nothing from one choice to the next: what counts is shared with the other threads. */
export interface Policy {
  readonly name: LoadBalancingPolicy;
  /** The index of the chosen one. `candidates` has at least one, in the order of their ids. */
  pick(candidates: readonly Candidate[], random: Random): number;
}
