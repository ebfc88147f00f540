/** The middle of the values; of an even number the mean of the two in the middle. NaN when there are none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** The spread of a figure over the rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Quotients of the values of each round: what disturbs a whole round disturbs both sides of its quotient. */
export function pairedRatios(values: readonly number[], others: readonly number[]): Spread {
  const ratios = values.map((value, round) => value / (others[round] ?? Number.NaN));
  return { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) };
}
