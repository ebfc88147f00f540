import { SvcError } from './errors.ts';

/** Longer words are not compared: users do not mistype a whole sentence, and the cost grows with the square. */
const longestWord = 64;

/** The known word that the user probably meant. Case is ignored; words that contain the given one come second. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const given = word.toLowerCase();
  if (given === '' || given.length > longestWord) return undefined;
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const lower = candidate.toLowerCase();
    const limit = Math.max(1, Math.floor(Math.max(given.length, lower.length) / 3));
    if (Math.abs(lower.length - given.length) > limit) continue;
    const distance = editDistance(given, lower);
    if (distance <= limit && distance < Math.max(given.length, lower.length) && (best === undefined || distance < best.distance)) {
      best = { word: candidate, distance };
    }
  }
  return best?.word ?? known.find((candidate) => candidate.startsWith(`${given}_`) || candidate.endsWith(`_${given}`));
}

/** Minimum of insertions, deletions, replacements and swaps of neighbours (optimal string alignment distance). */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let cost = Math.min(replaced, at(previous, j) + 1, at(current, j - 1) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, at(beforePrevious, j - 2) + 1);
      current.push(cost);
    }
    [beforePrevious, previous] = [previous, current];
  }
  return at(previous, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}

const kinds = {
  service: { code: 'SVC_SERVICE_NOT_FOUND', listCommand: 'svc serve status' },
  cluster: { code: 'SVC_CLUSTER_NOT_FOUND', listCommand: 'svc status' },
} as const;

const shownNames = 5;

/** The error for a name without a service or cluster. It suggests a similar known name or lists the known names. */
export function notNamed(kind: keyof typeof kinds, name: string, known: readonly string[]): SvcError {
  const { code, listCommand } = kinds[kind];
  const meant = didYouMean(name, known);
  const names = [...known.slice(0, shownNames), ...(known.length > shownNames ? ['and more'] : [])];
  const hint =
    meant !== undefined
      ? `Did you mean '${meant}'? Run: ${listCommand}`
      : known.length > 0
        ? `There are: ${names.join(', ')}. Run: ${listCommand}`
        : undefined;
  return new SvcError(code, `There is no ${kind} named '${name}'.`, { hint });
}

/** Names of services or clusters. */
export function namesOf(things: readonly { readonly name: string }[]): readonly string[] {
  return things.map(({ name }) => name);
}
