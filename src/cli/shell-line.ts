import { quoteWord } from './command-text.ts';

/** Words as one line of sh. A single word is a line already, as with ssh: `svc exec dev -- 'ls | wc -l'`. */
export function shellLine(words: readonly string[]): string {
  const [first = ''] = words;
  return words.length === 1 ? first : words.map(quoteWord).join(' ');
}
