import type { LoadBalancingPolicy } from '../../domain/task.ts';
import type { Random } from '../../shared/random.ts';
import type { RequestHead } from '../http1/request-head.ts';

const equal = (): number => 0;
/** Among replicas that had no turn yet, the first by id. */
const keepFirst = (): number => 1;

/**
 * The replica whose turn was longest ago. The order is the same in all threads, and added or removed replicas do not
 * make it skip others.
 */
function createRoundRobin(): Policy {
  return { name: 'round_robin', select: (candidates) => lowestCost(candidates, equal, keepFirst) };
}

const inFlightOf = (candidate: Candidate): number => candidate.inFlight;

function createLeastLoad(): Policy {
  return { name: 'least_load', select: (candidates, _request, { random }) => lowestCost(candidates, inFlightOf, random) };
}

/** Counts the new request too, so among idle replicas the strongest is chosen first. */
const relativeLoadOf = (candidate: Candidate): number => (candidate.inFlight + 1) / candidate.weight;

function createInstanceAwareLeastLoad(): Policy {
  return {
    name: 'instance_aware_least_load',
    select: (candidates, _request, { random }) => lowestCost(candidates, relativeLoadOf, random),
  };
}

const factories: Readonly<Record<LoadBalancingPolicy, () => Policy>> = {
  least_load: createLeastLoad,
  round_robin: createRoundRobin,
  instance_aware_least_load: createInstanceAwareLeastLoad,
};

/** The policy of that name. */
export function createPolicy(name: LoadBalancingPolicy): Policy {
  return factories[name]();
}

/**
 * The lowest cost. Equals take turns, even when requests come one at a time: the one chosen longest ago is next. Those
 * never chosen are equally likely: reservoir sampling with room for one needs no list (Vitter, "Random Sampling with a
 * Reservoir", 1985).
 */
function lowestCost(candidates: readonly Candidate[], costOf: (candidate: Candidate) => number, random: Random): number {
  let best = 0;
  let lowest = Number.POSITIVE_INFINITY;
  let longest = -1;
  let equals = 0;
  for (let index = 0; index < candidates.length; index += 1) {
    const candidate = candidates[index];
    if (candidate === undefined) continue;
    const cost = costOf(candidate);
    if (cost > lowest) continue;
    const since = candidate.sinceChoice;
    if (cost === lowest && since < longest) continue;
    equals = cost < lowest || since > longest ? 1 : equals + 1;
    lowest = cost;
    longest = since;
    if (equals === 1 || random() * equals < 1) best = index;
  }
  return best;
}

/** A replica as a policy sees it. */
export interface Candidate {
  readonly id: number;
  /** Exact over all threads. */
  readonly inFlight: number;
  /** Relative capacity, > 0. */
  readonly weight: number;
  /** Choices, of all candidates and in all threads, since this replica was last chosen; 2^32 when it never was. */
  readonly sinceChoice: number;
}

/** What the choices of one thread share. Loads and turns are in the candidates: they count for all threads. */
export interface PolicyState {
  readonly random: Random;
}

/** Chooses a replica for one request. Pure: all its memory is in `state` and in the candidates. */
export interface Policy {
  readonly name: LoadBalancingPolicy;
  /** The index of the chosen replica. `candidates` has at least one, in the order of their ids. */
  select(candidates: readonly Candidate[], request: RequestHead, state: PolicyState): number;
}
