import { windowEvidence, type Histograms } from './canary-evidence.ts';
import {
  levelEndMs,
  levelHistograms,
  oneBucketFaster,
  quantileOf,
  silenceOf,
  silentLevelOf,
  slowestHistograms,
  type FirstByteTime,
} from './first-byte-levels.ts';
import { countedIn, type ReplicaOutcomes } from './outcomes.ts';

/**
 * Compares a canary with the old version while both serve. `judgeCanary` may be called at any time, as often as wanted:
 * if both versions are equal, the probability that it ever says `worse` is at most 1 % for the whole canary.
 *
 * Windows. A window holds the responses between two calls, and the requests that hang: one that waits for its first byte
 * counts as one that takes at least that long (`first-byte-levels.ts`). Only responses of the same window are compared, so a slow
 * minute or an outage behind both versions is no evidence. A change of the canary's share is none either.
 *
 * Time. `windowEvidence` has an expectation of at most 1 if the versions are equal. The product over windows keeps this
 * property. It therefore ever reaches 100 with a probability of at most 1 % (Ville's inequality; Ramdas et al.,
 * "Game-theoretic statistics and safe anytime-valid inference", 2023). A weighted mean over alternatives, and over the
 * windows in which a version turns bad, has the property too (Robbins, "Statistical methods related to the law of the
 * iterated logarithm", 1970).
 *
 * Importance. Evidence alone would reject a version that is 1 % slower at 10,000 requests/s. `worse` therefore also
 * requires the effect sizes of `minimum`.
 *
 * Persistence. The 1 % assumes that bad moments hit both versions alike. Single replicas have slow spells of their own,
 * and a canary may be one replica. `worse` because of times therefore also requires that the canary was slower for most
 * of about 40 s, or that requests stayed silent again and again in them (`canaryPersistence`). This is a rule of thumb without a proof; `bench/canary/RESULTS.md` has measurements.
 *
 * Limits. A bad machine, or a single replica's spell of errors, still looks like a bad version if the canary has few
 * replicas.
 */

/**
 * Both versions at one moment, with their numbers for messages: the sums of their replicas since the start of the
 * comparison. If a number falls, a new window begins.
 */
interface CanaryOutcomes {
  readonly old: ReplicaOutcomes & { readonly version: number };
  readonly next: ReplicaOutcomes & { readonly version: number };
}

/** What the test remembers between calls; plain JSON. One memory serves all steps of a canary. */
export interface CanaryMemory {
  readonly windows: number;
  /** In the order of `alternatives`. */
  readonly evidence: readonly number[];
  /** What the last stretches of windows say about the time to first byte; the newest last, perhaps unfinished. */
  readonly stretches: readonly Stretch[];
  /** The outcomes at the end of the last window. */
  readonly seen: { readonly old: ReplicaOutcomes; readonly next: ReplicaOutcomes };
  /** Outcomes of about the last 120 windows; older ones fade out. Effect sizes come from them. */
  readonly recent: { readonly old: ReplicaOutcomes; readonly next: ReplicaOutcomes };
}

/** The part of a memory that is stored with the update; at most 4 KB of JSON. */
export type CanarySummary = Omit<CanaryMemory, 'seen'>;

const round = (value: number): number => (Math.abs(value) < 1e-3 ? 0 : Number(value.toPrecision(3)));

/** Rounds to three digits, and leaves out what has faded, so that the summary stays small. */
export function summaryOf({ windows, evidence, stretches, recent }: CanaryMemory): CanarySummary {
  const short = ({ responses, errors, firstByteCounts, waitCounts = [] }: ReplicaOutcomes): ReplicaOutcomes => ({
    responses: round(responses),
    errors: round(errors),
    firstByteCounts: firstByteCounts.map(round),
    waitCounts: waitCounts.map(round),
  });
  return {
    windows,
    evidence: evidence.map(round),
    stretches: stretches.map(({ firstByte, slowest, silent = 0 }) => ({
      firstByte: round(firstByte),
      slowest: round(slowest),
      silent: round(silent),
    })),
    recent: { old: short(recent.old), next: short(recent.next) },
  };
}

/** The memory with which another process goes on: it counts outcomes from 0. */
export function memoryOf(summary: CanarySummary): CanaryMemory {
  return { ...summary, seen: emptyMemory.seen };
}

/** The result of a comparison. `undecided` also means that the versions do not differ in a way that matters. */
export interface CanaryJudgement {
  readonly verdict: 'undecided' | 'worse';
  /** A sentence for users, with the figures. */
  readonly reason: string;
  readonly memory: CanaryMemory;
}

/** Smaller effects do not matter. Times within a factor of 2^(1/4), one bucket, are not evidence either. */
const minimum = { errorShareRise: 0.01, errorShareFactor: 1.5, firstByteFactor: 1.25 };

/** 1 / the probability of a false rollback. */
const sufficientEvidence = 100;

/** Limits stored numbers: JSON has no Infinity. */
const mostEvidence = 1e12;

/** Share of the prior evidence for a version that is bad from its first window on; the rest is for later windows. */
const badFromStart = 0.9;

const fadingPerWindow = 1 - 1 / 120;

type Measure = 'errors' | 'firstByte' | 'slowest' | 'silent';

/** A sum over windows per measure: positive if the canary was slower in most of them. */
type Stretch = Readonly<Record<'firstByte' | 'slowest', number>> & {
  /** Memories that older controllers stored omit it. */
  readonly silent?: number;
};

/**
 * Called every second, a stretch is 7 s: a spell of 10 s decides two of six at most. No window counts more than `most`,
 * so few very slow windows do not decide a stretch. One noisy stretch may disagree, but none may be below `least`.
 * Silence needs `silent` stretches that speak for it: 20 % of one request a second leave some stretches without any.
 */
export const canaryPersistence = { windows: 7, stretches: 6, slower: 5, silent: 4, most: 0.3, least: -1 };

/** At a share of 5 %, five silent requests of the canary suffice against none. */
const silentOdds = 12;

/**
 * The canary's odds of a worse rank are multiplied by `odds`. `firstByte` ranks all times; `slowest` only separates the
 * slowest 5 %, `silent` the requests without a first byte after at least 4.1 s (`silentLevelOf`). The weights sum to 1. With the highest odds, two failures against none suffice at a share of 5 %.
 */
const alternatives: readonly { readonly measure: Measure; readonly odds: number; readonly weight: number }[] = [
  { measure: 'errors', odds: 100, weight: 0.4 },
  { measure: 'errors', odds: 15, weight: 0.25 },
  { measure: 'errors', odds: 3, weight: 0.05 },
  { measure: 'firstByte', odds: 2, weight: 0.05 },
  { measure: 'firstByte', odds: 8, weight: 0.11 },
  { measure: 'firstByte', odds: 40, weight: 0.04 },
  { measure: 'slowest', odds: 4, weight: 0.03 },
  { measure: 'slowest', odds: 30, weight: 0.03 },
  { measure: 'silent', odds: silentOdds, weight: 0.04 },
];

/** Compares the outcomes since the last call. Pass the returned memory to the next call. */
export function judgeCanary(outcomes: CanaryOutcomes, memory: CanaryMemory = emptyMemory): CanaryJudgement {
  const window = {
    old: differenceOf(outcomes.old, memory.seen.old),
    next: differenceOf(outcomes.next, memory.seen.next),
  };
  const next = memoryAfter(outcomes, memory, window);
  const fault =
    (isProven('errors', next) && moreErrors(outcomes, next)) ||
    (isSilent(next) && moreSilent(outcomes, next)) ||
    (isSlower(next) && slowerFirstByte(outcomes, next));
  return { verdict: fault ? 'worse' : 'undecided', reason: fault || figuresOf(outcomes, next), memory: next };
}

type Pair = CanaryMemory['recent'];

function memoryAfter(outcomes: CanaryOutcomes, memory: CanaryMemory, window: Pair): CanaryMemory {
  const seen = { old: plain(outcomes.old), next: plain(outcomes.next) };
  if (hasFallen(window.old) || hasFallen(window.next)) return { ...memory, seen };
  // The window stays open until both versions have something to compare.
  if (countedIn(window.old) === 0 || countedIn(window.next) === 0) return memory;
  return { ...rememberWindow(memory, window), seen };
}

const hasFallen = ({ responses, errors, firstByteCounts, waitCounts = [] }: ReplicaOutcomes): boolean =>
  Math.min(responses, errors, ...firstByteCounts, ...waitCounts) < 0;

function rememberWindow(memory: CanaryMemory, window: Pair): Omit<CanaryMemory, 'seen'> {
  const { windows } = memory;
  const recent = { old: sumOf(memory.recent.old, window.old), next: sumOf(memory.recent.next, window.next) };
  const histograms = histogramsOf(window, memory.recent, recent);
  // Sums to 1 over all windows, and falls so slowly that a version which turns bad after an hour is found soon.
  const later = (1 - badFromStart) * Math.LN2 * (1 / Math.log(windows + 1) - 1 / Math.log(windows + 2));
  const prior = windows === 0 ? badFromStart : later;
  const evidence = alternatives.map(({ measure, odds, weight }, index) => {
    const before = (memory.evidence[index] ?? 0) + weight * prior;
    return Math.min(mostEvidence, before * evidenceOf(histograms[measure], odds));
  });
  return { windows: windows + 1, evidence, stretches: stretchesAfter(memory, histograms), recent };
}

function stretchesAfter({ windows, stretches }: CanaryMemory, histograms: ReturnType<typeof histogramsOf>): readonly Stretch[] {
  const begins = windows % canaryPersistence.windows === 0;
  const current = (begins ? undefined : stretches.at(-1)) ?? { firstByte: 0, slowest: 0 };
  // The lowest odds of each measure: they speak for large effects too.
  const added = (measure: keyof Stretch, odds: number, most = canaryPersistence.most): number =>
    (current[measure] ?? 0) + Math.max(-most, Math.min(most, Math.log(evidenceOf(histograms[measure], odds))));
  // A window with a silent request counts in full: few others say anything about silence.
  const stretch = {
    firstByte: added('firstByte', 2),
    slowest: added('slowest', 4),
    silent: added('silent', silentOdds, Math.log(mostEvidence)),
  };
  return [...(begins ? stretches : stretches.slice(0, -1)), stretch].slice(-canaryPersistence.stretches);
}

/** The requests of a window per measure, ordered from good to bad. Each of several histograms has requests of its own. */
function histogramsOf(window: Pair, before: Pair, recent: Pair): Readonly<Record<Measure, readonly Histograms[]>> {
  const levels = levelHistograms(window);
  const silentLevel = silentLevelOf(before.old);
  // The limit comes from both versions together, so it favours neither.
  const all = plus(recent.old.firstByteCounts, oneBucketFaster(recent.next.firstByteCounts));
  return {
    errors: [{ old: goodAndBad(window.old), next: goodAndBad(window.next) }],
    firstByte: levels.filter(({ next }) => next.some((count) => count > 0)),
    slowest: [slowestHistograms(levels, bucketAt(all, 0.95))],
    silent: [{ old: silenceOf(window.old, silentLevel), next: silenceOf(window.next, silentLevel) }],
  };
}

const evidenceOf = (histograms: readonly Histograms[], odds: number): number =>
  histograms.reduce((product, one) => product * windowEvidence(one, odds), 1);

const goodAndBad = ({ responses, errors }: ReplicaOutcomes): readonly number[] => [responses - errors, errors];

const isProven = (measure: Measure, { evidence }: CanaryMemory): boolean =>
  total(evidence.filter((_, index) => alternatives[index]?.measure === measure)) >= sufficientEvidence;

const isSlower = (memory: CanaryMemory): boolean =>
  (['firstByte', 'slowest'] as const).some((measure) => isProven(measure, memory) && persists(measure, memory));

function isSilent(memory: CanaryMemory): boolean {
  const spoke = memory.stretches.filter(({ silent = 0 }) => silent > 0);
  return isProven('silent', memory) && spoke.length >= canaryPersistence.silent;
}

function persists(measure: 'firstByte' | 'slowest', { stretches }: CanaryMemory): boolean {
  const sums = stretches.map((stretch) => stretch[measure]);
  return sums.filter((sum) => sum > 0).length >= canaryPersistence.slower && sums.every((sum) => sum > canaryPersistence.least);
}

/** The complaint about errors, or an empty text if their rise does not matter. */
function moreErrors(outcomes: CanaryOutcomes, { recent: { old, next } }: CanaryMemory): string {
  const matters = isHigherShare([old.errors, old.responses], [next.errors, next.responses]);
  return matters ? errorsText(outcomes) : '';
}

type Share = readonly [count: number, all: number];

function isHigherShare([oldCount, oldAll]: Share, [nextCount, nextAll]: Share): boolean {
  const oldShare = oldAll === 0 ? 0 : oldCount / oldAll;
  // One standard error below the estimate: few errors may overstate a small rise.
  const nextShare = (nextCount - Math.sqrt(nextCount)) / nextAll;
  return nextShare >= oldShare + minimum.errorShareRise && nextShare >= oldShare * minimum.errorShareFactor;
}

/** The complaint about silent requests, or an empty text if their rise does not matter. */
function moreSilent({ old, next }: CanaryOutcomes, { recent }: CanaryMemory): string {
  const level = silentLevelOf(recent.old);
  const shareIn = (outcomes: ReplicaOutcomes): Share => {
    const [good, silent] = silenceOf(outcomes, level);
    return [silent, good + silent];
  };
  if (!isHigherShare(shareIn(recent.old), shareIn(recent.next))) return '';
  const [[ofOld, allOld], [ofNext, allNext]] = [shareIn(old), shareIn(next)];
  return (
    `${ofNext} of ${allNext} requests of version ${next.version} had no byte of a response after ` +
    `${timeText({ ms: levelEndMs(level), isOpen: false })}, ${ofOld} of ${allOld} of version ${old.version}.`
  );
}

/** The complaint about the time to first byte, or an empty text if the difference does not matter. */
function slowerFirstByte({ old, next }: CanaryOutcomes, { recent }: CanaryMemory): string {
  for (const [name, share] of [
    ['median', 0.5],
    ['95th percentile', 0.95],
  ] as const) {
    const [oldTime, nextTime] = [quantileOf(recent.old, share), quantileOf(recent.next, share)];
    if (oldTime !== undefined && nextTime !== undefined && nextTime.ms >= oldTime.ms * minimum.firstByteFactor)
      return `The ${name} of the time to first byte of version ${next.version} is ${timeText(nextTime)}, of version ${old.version} ${timeText(oldTime)}.`;
  }
  return '';
}

function figuresOf(outcomes: CanaryOutcomes, { recent: { old, next }, windows }: CanaryMemory): string {
  const { version } = outcomes.next;
  if (windows === 0) return `There are no responses of version ${version} to compare yet.`;
  const medians = `${medianText(next)} and ${medianText(old)}`;
  return `Version ${version} is not worse so far: ${errorsText(outcomes).replace(/\.$/, '')}; median times to first byte: ${medians}.`;
}

function medianText(outcomes: ReplicaOutcomes): string {
  const median = quantileOf(outcomes, 0.5);
  return median === undefined ? 'unknown' : timeText(median);
}

const errorsText = ({ old, next }: CanaryOutcomes): string =>
  `${next.errors} of ${next.responses} requests of version ${next.version} failed, ` +
  `${old.errors} of ${old.responses} of version ${old.version}.`;

function timeText({ ms, isOpen }: FirstByteTime): string {
  const text = ms < 1000 ? `${Number(ms.toPrecision(2))} ms` : `${Number((ms / 1000).toPrecision(2))} s`;
  return isOpen ? `more than ${text}` : text;
}

/** The first bucket up to which at least this share of the responses lies. */
function bucketAt(counts: readonly number[], share: number): number {
  const wanted = share * total(counts);
  let sum = 0;
  const found = counts.findIndex((count) => (sum += count) >= wanted && count > 0);
  return Math.max(0, found);
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

const plus = (a: readonly number[] = [], b: readonly number[] = []): readonly number[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, index) => (a[index] ?? 0) + (b[index] ?? 0));

const plain = ({ responses, errors, firstByteCounts, waitCounts = [] }: ReplicaOutcomes): ReplicaOutcomes => ({
  responses,
  errors,
  firstByteCounts,
  waitCounts,
});

const sumOf = (faded: ReplicaOutcomes, added: ReplicaOutcomes): ReplicaOutcomes => ({
  responses: faded.responses * fadingPerWindow + added.responses,
  errors: faded.errors * fadingPerWindow + added.errors,
  firstByteCounts: plus(fade(faded.firstByteCounts), added.firstByteCounts),
  waitCounts: plus(fade(faded.waitCounts), added.waitCounts),
});

const fade = (counts: readonly number[] = []): readonly number[] => counts.map((count) => count * fadingPerWindow);

const differenceOf = (now: ReplicaOutcomes, seen: ReplicaOutcomes): ReplicaOutcomes => ({
  responses: now.responses - seen.responses,
  errors: now.errors - seen.errors,
  firstByteCounts: minus(now.firstByteCounts, seen.firstByteCounts),
  waitCounts: minus(now.waitCounts, seen.waitCounts),
});

const minus = (a: readonly number[] = [], b: readonly number[] = []): readonly number[] => a.map((count, index) => count - (b[index] ?? 0));

const none: ReplicaOutcomes = { responses: 0, errors: 0, firstByteCounts: [], waitCounts: [] };
const emptyMemory: CanaryMemory = {
  windows: 0,
  evidence: [],
  stretches: [],
  seen: { old: none, next: none },
  recent: { old: none, next: none },
};
