/** Quotes a text as one word of a POSIX shell. NUL cannot occur: no argument can hold it. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** As `shellQuote`, but for messages: without quotes where none are needed. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : shellQuote(text);
}

/** An argument vector as a shell command. */
export function shellCommand(argv: readonly string[]): string {
  return argv.map(shellQuote).join(' ');
}
