import type { LoadBalancingPolicy } from '../../domain/task.ts';
import type { Random } from '../../shared/random.ts';

/** A replica as a policy sees it. */
export interface Candidate {
  readonly id: number;
  /** Requests that it has at this moment, exact. */
  readonly inFlight: number;
  /** Relative capacity, > 0. */
  readonly weight: number;
  /** Number of the choice by which it was last taken, ascending over all candidates; 0 before the first. */
  readonly lastChoice: number;
}

/** Chooses a replica for one request. */
export interface Policy {
  readonly name: LoadBalancingPolicy;
  /** The index of the chosen one. `candidates` has at least one, in the order of their ids. */
  pick(candidates: readonly Candidate[], random: Random): number;
}
