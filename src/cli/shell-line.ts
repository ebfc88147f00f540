/** Words as one line of sh. A single word is a line already, as with ssh: `svc exec dev -- 'ls | wc -l'`. */
export function shellLine(words: readonly string[]): string {
  const [first = ''] = words;
  return words.length === 1 ? first : words.map(quoteWord).join(' ');
}

/** One word of sh that stands for the text. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
