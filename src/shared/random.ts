/** A source of numbers in [0, 1). Passed as a parameter, so that decisions are repeatable with a seed. */
export type Random = () => number;

/** Not reproducible; for production. */
export const systemRandom: Random = () => Math.random();

/** Reproducible numbers from a seed (mulberry32, Tommy Ettinger, public domain). Not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
