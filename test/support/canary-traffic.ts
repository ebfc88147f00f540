import { judgeCanary, type CanaryJudgement, type CanaryMemory } from '../../src/domain/canary.ts';
import { firstByteLimitsMs, waitLimitsMs, type ReplicaOutcomes } from '../../src/domain/outcomes.ts';
import { seededRandom, type Random } from '../../src/shared/random.ts';

/** Draws one time to first byte. */
export type FirstByte = (random: Random) => number;

interface Badness {
  readonly errorShare?: number;
  readonly firstByteFactor?: number;
  /** The share of the requests that get no answer within the simulation. */
  readonly hangShare?: number;
}

/** Simulated traffic of a service with a canary. */
export interface CanaryTraffic {
  readonly requestsPerSecond: number;
  /** The share of version 2. */
  readonly share: number;
  readonly firstByte: FirstByte;
  readonly errorShare: number;
  /** How version 2 differs; equal to version 1 without it. */
  readonly next?: Badness & { readonly badFromSecond?: number };
  /** Minutes in which both versions are four times slower and 20 % of their requests fail, at random moments. */
  readonly bursts?: boolean;
  /** Every replica is bad on its own for 10 s at random moments, 10 % of its time. `share` is that of whole replicas. */
  readonly spells?: { readonly replicas: number; readonly firstByteFactor?: number; readonly errorShare?: number };
  readonly seconds: number;
}

const normal: FirstByte = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** Times to first byte with this median and standard deviation of the logarithm. */
export const lognormal =
  (medianMs: number, sigma: number): FirstByte =>
  (random) =>
    medianMs * Math.exp(sigma * normal(random));

/** Distributions for simulations. */
export const firstByteDistributions: Readonly<Record<string, FirstByte>> = {
  'lognormal 0.3': lognormal(100, 0.3),
  'lognormal 1': lognormal(100, 1),
  'lognormal 2': lognormal(100, 2),
  bimodal: (random) => (random() < 0.8 ? lognormal(20, 0.3) : lognormal(2000, 0.3))(random),
  'LLM, 0.2 to 30 s': (random) => Math.min(30_000, Math.max(200, lognormal(1500, 1.2)(random))),
  constant: () => 50,
  '3 % wait 30 to 120 s': (random) => (random() < 0.03 ? 30_000 + 90_000 * random() : lognormal(100, 1)(random)),
};

/** Tells whether a replica is in a bad spell; drawn as needed, so that runs without spells stay the same. */
function spellsOf(random: Random): (replica: number, second: number) => boolean {
  const ends = new Map<number, number>();
  const gap = (): number => -90 * Math.log(1 - random());
  return (replica, second) => {
    let end = ends.get(replica) ?? second + (random() < 0.1 ? 10 * random() : gap() + 10);
    while (end <= second) end += gap() + 10;
    ends.set(replica, end);
    return second >= end - 10;
  };
}

interface Counts {
  responses: number;
  errors: number;
  readonly firstByteCounts: number[];
  readonly waitCounts: number[];
}

const zero = (): Counts => ({
  responses: 0,
  errors: 0,
  firstByteCounts: Array.from({ length: firstByteLimitsMs.length + 1 }, () => 0),
  waitCounts: waitLimitsMs.map(() => 0),
});

/** A version serves for this long before the canary starts, so that slow requests are under way. */
const warmUpSeconds = 60;

/** Calls the judge every second. Returns the second of its verdict `worse`, or null, and its last judgement. */
export function simulateCanary(traffic: CanaryTraffic, seed: number): { readonly foundAt: number | null; readonly last: CanaryJudgement } {
  const random = seededRandom(seed);
  const { bursts = false, next = {}, share, requestsPerSecond, seconds, spells } = traffic;
  const canaryReplicas = Math.round(share * (spells?.replicas ?? 0));
  const inSpell = spellsOf(random);
  const oldReplicas = (spells?.replicas ?? 0) - canaryReplicas;
  const replicaOf = (isNext: boolean): number =>
    Math.floor(random() * (isNext ? canaryReplicas : oldReplicas)) + (isNext ? 0 : canaryReplicas);
  const [old, canary] = [zero(), zero()];
  // By the second in which the first byte arrives, or a request has waited so long.
  const arriving = new Map<number, (() => void)[]>();
  let memory: CanaryMemory | undefined;
  let last: CanaryJudgement = judgeCanary({ old: { ...old, version: 1 }, next: { ...canary, version: 2 } });
  let turn = random();
  let burstUntil = -Infinity;
  let arrival = -warmUpSeconds;
  for (let second = -warmUpSeconds; second < seconds; second++) {
    if (bursts && random() < 1 / 180) burstUntil = second + 60 * random() * 2;
    const inBurst = second < burstUntil;
    for (; arrival < second + 1; arrival -= Math.log(1 - random()) / requestsPerSecond) {
      if (second >= 0) turn += share;
      const isNext = turn >= 1;
      if (isNext) turn -= 1;
      const bad: Badness = isNext && second >= (next.badFromSecond ?? 0) ? next : {};
      const spell: Badness = spells && inSpell(replicaOf(isNext), second) ? spells : {};
      const hangs = bad.hangShare !== undefined && random() < bad.hangShare;
      const ms = hangs
        ? Infinity
        : traffic.firstByte(random) * (bad.firstByteFactor ?? 1) * (inBurst ? 4 : 1) * (spell.firstByteFactor ?? 1);
      const fails = random() < Math.max(bad.errorShare ?? traffic.errorShare, inBurst ? 0.2 : 0, spell.errorShare ?? 0);
      const counts = isNext ? canary : old;
      const at = (afterMs: number, apply: () => void): void => {
        const arrivesIn = Math.floor(arrival + afterMs / 1000);
        const batch = arriving.get(arrivesIn) ?? [];
        batch.push(apply);
        arriving.set(arrivesIn, batch);
      };
      for (const [index, limit] of waitLimitsMs.entries())
        if (limit < ms) at(limit, () => (counts.waitCounts[index] = (counts.waitCounts[index] ?? 0) + 1));
      if (!hangs) at(ms, () => count(counts, ms, fails));
    }
    const arrived = arriving.get(second) ?? [];
    arriving.delete(second);
    // What arrives before the canary starts is not part of the comparison.
    if (second < 0) continue;
    for (const apply of arrived) apply();
    last = judgeCanary({ old: { ...copy(old), version: 1 }, next: { ...copy(canary), version: 2 } }, memory);
    memory = last.memory;
    if (last.verdict === 'worse') return { foundAt: second + 1, last };
  }
  return { foundAt: null, last };
}

const copy = (counts: Counts): ReplicaOutcomes => ({
  ...counts,
  firstByteCounts: [...counts.firstByteCounts],
  waitCounts: [...counts.waitCounts],
});

function count(counts: Counts, ms: number, fails: boolean): void {
  counts.responses++;
  if (fails) counts.errors++;
  const bucket = Math.min(firstByteLimitsMs.length, Math.max(0, Math.ceil(4 * Math.log2(ms) - 1e-9)));
  counts.firstByteCounts[bucket] = (counts.firstByteCounts[bucket] ?? 0) + 1;
}
