import { seededRandom } from '../shared/random.ts';
import { leastOnDemand } from './spot-bound.ts';
import { spotPolicies, type SpotChoice } from './spot-policies.ts';
import type { SpotPolicyOf, SpotTrace } from './spot-fleet.ts';
import { runSpot, type SpotResult } from './spot-world.ts';

/** Runs with other random numbers, of which the scores are the means. */
export const seeds = [0, 1, 2];

/** What a simulation over spot capacity compares. */
export interface SpotQuestion {
  readonly trace: SpotTrace;
  /** Ready replicas that the service needs. */
  readonly target: number;
  readonly coldStartSeconds: number;
  /** Price of a spot replica in each zone, relative to one on demand. */
  readonly spotPrices: readonly number[];
  /** Spot replicas beyond the target for `dynamic_fallback`. */
  readonly spare: number;
  readonly compared: readonly (keyof typeof spotPolicies)[];
}

/** How one policy did. Shares are from 0 to 1. */
export interface SpotScore {
  readonly policy: string;
  readonly kind: SpotChoice['kind'] | 'bound';
  readonly summary: string;
  /** Money, relative to all replicas on demand. */
  readonly cost: number;
  /** Replica-hours on demand that cost as much. */
  readonly paidHours: number;
  /** Share of the time with enough ready replicas. */
  readonly available: number;
  readonly failed: number;
  readonly spotHours: number;
  readonly onDemandHours: number;
  readonly lostPerDay: number;
  readonly changesPerHour: number;
}

/** Replicas at one decision. */
export interface SpotPoint {
  readonly second: number;
  readonly ready: number;
  readonly onDemand: number;
}

/** The scores of all policies, and their courses for charts. */
export interface SpotAnswer {
  readonly scores: readonly SpotScore[];
  readonly courses: readonly { readonly policy: string; readonly points: readonly SpotPoint[] }[];
}

/** Runs the compared policies over the same capacity. */
export function simulateSpot(question: SpotQuestion): SpotAnswer {
  const runs = question.compared.map((name) => {
    const { kind, summary, policy }: SpotChoice = spotPolicies[name];
    const points: SpotPoint[] = [];
    const results = seeds.map((seed, index) =>
      runOnce(question, index === 0 ? recording(policy(seed, question.spare), points) : policy(seed, question.spare), seed),
    );
    const mean = (value: (result: SpotResult) => number): number => results.reduce((sum, one) => sum + value(one), 0) / results.length;
    const hours = question.target * mean(({ days }) => days) * 24;
    const score: SpotScore = {
      policy: name,
      kind,
      summary,
      cost: mean(({ cost }) => cost),
      paidHours: hours * mean(({ cost }) => cost),
      available: mean(({ available }) => available),
      failed: mean(({ failed }) => failed),
      spotHours: hours * mean(({ spot }) => spot),
      onDemandHours: hours * mean(({ onDemand }) => onDemand),
      lostPerDay: mean(({ lostPerDay }) => lostPerDay),
      changesPerHour: mean(({ changesPerHour }) => changesPerHour),
    };
    return { score, course: { policy: name, points } };
  });
  return { scores: [...runs.map(({ score }) => score), boundOf(question)], courses: runs.map(({ course }) => course) };
}

function runOnce({ trace, target, coldStartSeconds, spotPrices }: SpotQuestion, policyOf: SpotPolicyOf, seed: number): SpotResult {
  const options = { target, onDemandPrice: 1, spotPrices, coldStartMs: coldStartSeconds * 1_000, random: seededRandom(seed) };
  return runSpot(trace, policyOf, options);
}

function boundOf({ trace, target, coldStartSeconds, spotPrices }: SpotQuestion): SpotScore {
  const { spot, onDemand, cost } = leastOnDemand(trace, { target, coldStartSeconds, spotPrices });
  const hours = (target * trace.gapSeconds * (trace.capacity[0]?.length ?? 0)) / 3_600;
  return {
    policy: 'bound',
    kind: 'bound',
    summary: 'always enough ready replicas with the fewest on demand, with hindsight',
    cost,
    paidHours: hours * cost,
    available: 1,
    failed: 0,
    spotHours: hours * spot,
    onDemandHours: hours * onDemand,
    lostPerDay: 0,
    changesPerHour: 0,
  };
}

/** The same policy. Its replicas before each decision are added to `points`. */
function recording(policyOf: SpotPolicyOf, points: SpotPoint[]): SpotPolicyOf {
  return (options, zones) => {
    const policy = policyOf(options, zones);
    return {
      ...policy,
      step(world) {
        policy.step(world);
        const { now, spot, onDemand } = world;
        const ready = [...spot, ...onDemand].filter(({ readyAt }) => readyAt <= now).length;
        points.push({ second: now / 1_000, ready, onDemand: onDemand.length });
      },
    };
  };
}
