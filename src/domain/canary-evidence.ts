/** The responses of a window, counted per bucket. The buckets go from good to bad. */
export interface Histograms {
  readonly old: readonly number[];
  readonly next: readonly number[];
}

/**
 * The evidence of one window that the canary's responses are worse, for one alternative. If the versions are equal, its
 * expectation is at most 1 whatever the responses are.
 *
 * All responses of both versions are ordered from good to bad. The alternative gives each response a weight that grows
 * with its rank; the weights' mean is 1. The evidence is the product of the weights of the canary's responses. If the
 * versions are equal, every set of responses is equally likely to be the canary's. The expected product is then at most
 * 1 by Maclaurin's inequality for elementary symmetric means.
 */
export function windowEvidence(histograms: Histograms, odds: number): number {
  const [[oldGood = 0, oldBad = 0], [nextGood = 0, nextBad = 0]] = [histograms.old, histograms.next];
  return histograms.next.length === 2
    ? evidenceOfTable({ old: oldGood + oldBad, next: nextGood + nextBad, bad: oldBad + nextBad, nextBad }, odds)
    : evidenceOfRanks(histograms, odds);
}

/**
 * For good and bad without ranks the product can be divided by its exact mean, which is more powerful for large shares:
 * the ratio of Fisher's noncentral hypergeometric probability to the central one.
 */
function evidenceOfTable(table: { old: number; next: number; bad: number; nextBad: number }, odds: number): number {
  const { old, next, bad, nextBad } = table;
  const least = Math.max(0, bad - old);
  // Logarithms of the probability that the canary has `least`, `least + 1`, … of the bad responses, up to a constant.
  const logs = [0];
  for (let count = least; count < Math.min(bad, next); count++)
    logs.push((logs.at(-1) ?? 0) + Math.log(((bad - count) * (next - count)) / ((count + 1) * (old - bad + count + 1))));
  const logOdds = Math.log(odds);
  const mean = logSum(logs.map((log, index) => log + index * logOdds)) - logSum(logs);
  return Math.exp((nextBad - least) * logOdds - mean);
}

function logSum(logs: readonly number[]): number {
  const most = logs.reduce((max, log) => Math.max(max, log), -Infinity);
  return most + Math.log(total(logs.map((log) => Math.exp(log - most))));
}

/** The product of the weights; the alternative multiplies the odds of every worse rank (proportional odds). */
function evidenceOfRanks({ old, next }: Histograms, odds: number): number {
  const all = total(old) + total(next);
  let logEvidence = 0;
  let worse = all;
  for (const [bucket, ofNext] of next.entries()) {
    const inBucket = ofNext + (old[bucket] ?? 0);
    if (ofNext > 0) {
      // Responses of one bucket share the mean weight of their ranks.
      const expected = shareWithOdds(worse / all, odds) - shareWithOdds((worse - inBucket) / all, odds);
      logEvidence += ofNext * Math.log(expected / (inBucket / all));
    }
    worse -= inBucket;
  }
  return Math.exp(logEvidence);
}

const shareWithOdds = (share: number, odds: number): number => (odds * share) / (1 - share + odds * share);

const total = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
