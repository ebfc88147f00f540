import type { FuzzCase } from './fuzz-case.ts';

/** Shrinks a case while `isStillOne` holds: first removes cuts between reads, then ever smaller parts of its bytes. */
export async function shrink(one: FuzzCase, isStillOne: (smaller: FuzzCase) => Promise<boolean>): Promise<FuzzCase> {
  let smallest = one;
  const tryOne = async (smaller: FuzzCase): Promise<boolean> => {
    if (!(await isStillOne(smaller))) return false;
    smallest = smaller;
    return true;
  };
  await tryOne({ ...smallest, cuts: [] });
  for (let size = one.text.length >> 1; size > 0; size >>= 1) {
    for (let at = 0; at < smallest.text.length;) {
      if (!(await tryOne(without(smallest, at, size)))) at += size;
    }
  }
  return smallest;
}

function without({ text, cuts, ...rest }: FuzzCase, at: number, size: number): FuzzCase {
  return {
    ...rest,
    text: text.slice(0, at) + text.slice(at + size),
    cuts: cuts.map((cut) => (cut <= at ? cut : Math.max(at, cut - size))),
  };
}
