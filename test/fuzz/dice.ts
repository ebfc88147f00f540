import { seededRandom, type Random } from '../../src/shared/random.ts';

/** All random choices of one case, so that its seed repeats it. */
export class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** From 0 up to, but excluding, `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  oneOf<Value>(values: readonly [Value, ...Value[]]): Value {
    return values[this.below(values.length)] ?? values[0];
  }

  /** Some of the values, in their order; each with the probability 1 in `times`. */
  someOf<Value>(values: readonly Value[], times: number): readonly Value[] {
    return values.filter(() => this.once(times));
  }

  /** `count` results of `make`, joined. */
  repeat(count: number, make: () => string): string {
    let out = '';
    for (let turn = 0; turn < count; turn += 1) out += make();
    return out;
  }
}
