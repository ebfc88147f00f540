/** The text as one word of a POSIX shell, whatever it holds (but NUL, which no argument can hold). */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** An argument vector as a shell command. */
export function shellCommand(argv: readonly string[]): string {
  return argv.map(shellQuote).join(' ');
}
