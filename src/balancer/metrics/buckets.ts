/**
 * Upper bounds for whole requests, s: from what a balancer adds to a quick answer up to ten minutes of generated text. About three to a decade,
 * denser where the first token of a language model usually comes.
 */
export const durationBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** Upper bounds for the delay of an event loop, s. */
export const delayBounds: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The bucket for a value: the first whose bound is not below it (`le`), or one more than there are bounds. Pure. */
export function bucketOf(value: number, bounds: readonly number[]): number {
  let index = 0;
  while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
  return index;
}
