import type { Histograms } from './canary-evidence.ts';
import { levelEnds, type ReplicaOutcomes } from './outcomes.ts';

/**
 * Times to first byte of which some are not known yet. A request that waits counts at the end of each level that it
 * outlasts, long before it ends.
 *
 * A level compares the requests that reached it: by their times, and as worst those that outlasted the level. A request
 * is counted once in each level that it reaches. In a level, only what happened there counts. So the evidence of the
 * levels may be multiplied, and a request that hangs is no stronger evidence than its time would be.
 */

type Times = Pick<ReplicaOutcomes, 'firstByteCounts' | 'waitCounts'>;

/** The first bucket of each level, and the end of the last one. */
const starts: readonly number[] = [0, ...levelEnds.map((end) => end + 1)];
const buckets = 79;

interface Level {
  /** Requests with their first byte in this level, per bucket. */
  readonly answered: readonly number[];
  /** Requests that outlasted the level. */
  readonly beyond: number;
}

/** `faster`: by how many buckets all times are taken as shorter, 0 or 1. */
function levelsOf({ firstByteCounts, waitCounts = [] }: Times, faster: 0 | 1): readonly Level[] {
  const counts = faster === 0 ? firstByteCounts : oneBucketFaster(firstByteCounts);
  return starts.map((start, level) => ({
    answered: Array.from({ length: (starts[level + 1] ?? buckets) - start }, (_, index) => counts[start + index] ?? 0),
    beyond: waitCounts[2 * level + faster] ?? 0,
  }));
}

/** The same times, each shorter by one bucket. */
export function oneBucketFaster([first = 0, second = 0, ...rest]: readonly number[]): readonly number[] {
  return [first + second, ...rest];
}

/** The times of a window per level. The canary's are taken as one bucket shorter: so small a difference is no evidence. */
export function levelHistograms(window: { readonly old: Times; readonly next: Times }): readonly Histograms[] {
  const next = levelsOf(window.next, 1);
  return levelsOf(window.old, 0).map((old, level) => ({ old: cellsOf(old), next: cellsOf(next[level]) }));
}

const cellsOf = (level: Level | undefined): readonly number[] => (level === undefined ? [] : [...level.answered, level.beyond]);

/** Two cells: requests below the `limit` (a bucket), and the others, as soon as they outlast the level of the limit. */
export function slowestHistograms(levels: readonly Histograms[], limit: number): Histograms {
  const level = levelEnds.filter((end) => end < limit).length;
  const split = (side: keyof Histograms): readonly number[] => {
    const earlier = levels.slice(0, level).flatMap((one) => one[side].slice(0, -1));
    const own = levels[level]?.[side] ?? [];
    const from = limit - (starts[level] ?? 0);
    return [total(earlier) + total(own.slice(0, from)), total(own.slice(from))];
  };
  return { old: split('old'), next: split('next') };
}

/** Silence is no shorter than the end of this level, 4.1 s: shorter waits are slow, not silent. */
const firstSilentLevel = 1;

/** At most this share of the old version's requests is silent. */
const mostSilentOfOld = 0.05;

/**
 * The level at whose end a request without a first byte is silent: the first one that few requests of the old version
 * outlast. `old`: its requests before the window in which the level is used, so the choice says nothing about the window.
 */
export function silentLevelOf(old: Times): number {
  const found = levelEnds.findIndex((_, level) => {
    const [good, silent] = silenceOf(old, level);
    return level >= firstSilentLevel && silent <= mostSilentOfOld * (good + silent);
  });
  return found < 0 ? levelEnds.length - 1 : found;
}

/** The requests that got their first byte until the end of the level, and those that outlasted it. */
export function silenceOf({ firstByteCounts, waitCounts = [] }: Times, level: number): readonly [good: number, silent: number] {
  return [total(firstByteCounts.slice(0, starts[level + 1])), waitCounts[2 * level] ?? 0];
}

/** The end of a level, ms. */
export const levelEndMs = (level: number): number => limitOf(levelEnds[level] ?? buckets - 1);

/** A time to first byte. `isOpen`: it is longer than `ms`, and how long is not known. */
export interface FirstByteTime {
  readonly ms: number;
  readonly isOpen: boolean;
}

/**
 * The time within which this share of the requests got their first byte; undefined without any request. Open requests
 * count too: of those that reach a level, the share that outlasts it is known (Kaplan and Meier, "Nonparametric
 * estimation from incomplete observations", 1958). Within a bucket times are taken as evenly spread on the logarithmic
 * scale.
 */
export function quantileOf(times: Times, share: number): FirstByteTime | undefined {
  const levels = levelsOf(times, 0);
  let reaching = 1;
  for (const [level, { answered, beyond }] of levels.entries()) {
    const [start = 0, later] = [starts[level], levels.slice(level + 1)];
    // Counts from before the balancer counted waits, and counts that faded, may be missing.
    const outlasting = Math.max(beyond, total(later.flatMap((one) => one.answered)));
    const all = total(answered) + outlasting;
    if (all === 0) return level === 0 ? undefined : { ms: limitOf(start - 1), isOpen: true };
    let wanted = ((share - (1 - reaching)) / reaching) * all;
    for (const [index, count] of answered.entries()) {
      if (count > 0 && wanted <= count) return { ms: limitOf(start + index - 1 + Math.max(0, wanted) / count), isOpen: false };
      wanted -= count;
    }
    reaching *= outlasting / all;
  }
  return { ms: limitOf(buckets - 1), isOpen: true };
}

/** The upper limit of a bucket, ms; of a fraction, a time in it. */
const limitOf = (bucket: number): number => 2 ** (bucket / 4);

const total = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
