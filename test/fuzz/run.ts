import { aPipeline, aResponse } from './grammar.ts';
import { checkRequests } from './check-requests.ts';
import { checkResponse } from './check-response.ts';
import { Dice } from './dice.ts';
import { kinds, type FuzzCase, type Verdict } from './fuzz-case.ts';
import { mutate } from './mutate.ts';
import { shrink } from './shrink.ts';

/** Generates the case of a seed. */
export function makeCase(seed: number): FuzzCase {
  const dice = new Dice(seed);
  const kind = kinds[seed % kinds.length] ?? 'requests';
  const method = dice.oneOf(['GET', 'GET', 'HEAD', 'POST']);
  const text = mutate(dice, kind === 'requests' ? aPipeline(dice) : aResponse(dice, method));
  const cuts = Array.from({ length: dice.below(6) }, () => dice.below(text.length + 1));
  return { kind, text, method, cuts };
}

/** Runs both parsers on a case. */
export function check(one: FuzzCase): Promise<Verdict> {
  return one.kind === 'requests' ? checkRequests(one) : checkResponse(one);
}

/** The findings of a run. */
export interface FuzzResult {
  readonly cases: number;
  readonly refused: number;
  /** How often each known difference occurred. */
  readonly known: ReadonlyMap<string, number>;
  /** The first unknown disagreement, with its smallest case. */
  readonly finding: { readonly seed: number; readonly smallest: FuzzCase; readonly disagreement: string } | undefined;
}

/** Checks the cases of `firstSeed` and the following seeds, until one disagrees or `isOver`. */
export async function run(firstSeed: number, isOver: (cases: number) => boolean): Promise<FuzzResult> {
  const known = new Map<string, number>();
  let refused = 0;
  let cases = 0;
  for (; !isOver(cases); cases += 1) {
    const seed = (firstSeed + cases) >>> 0;
    const one = makeCase(seed);
    const { disagreement, isRefused, knownDifference } = await check(one);
    if (isRefused) refused += 1;
    if (knownDifference !== undefined) known.set(knownDifference, (known.get(knownDifference) ?? 0) + 1);
    else if (disagreement !== undefined) {
      const smallest = await shrink(one, async (smaller) => isFinding(await check(smaller)));
      const verdict = await check(smallest);
      return { cases: cases + 1, refused, known, finding: { seed, smallest, disagreement: verdict.disagreement ?? disagreement } };
    }
  }
  return { cases, refused, known, finding: undefined };
}

function isFinding({ disagreement, knownDifference }: Verdict): boolean {
  return disagreement !== undefined && knownDifference === undefined;
}
