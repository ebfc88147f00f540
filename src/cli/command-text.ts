import { stripVTControlCharacters } from 'node:util';
import { displayWidth } from './listing/display-text.ts';

/** `svc` in our messages where one of its commands follows; not in a path, not in running text. */
const commandStart =
  /(?<![\w/.-])svc (?=(?:serve|controller|catalog|status|launch|exec|logs|down|check|offers|simulate|completion|help)\b|\[|--?[a-z])/g;

/** A whole command, up to the end of its sentence or of its parentheses or quotes. */
const wholeCommand = new RegExp(`${commandStart.source}.*?(?=[;,()\`]|[.:?](?: |$)|$)`, 'g');

/** A space at which a line must not be broken. */
const noBreak = '\u00A0';

/** Quotes a text as one word of sh. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The name by which the user runs this program, as a word of sh. `path`: how the wrapper was called. */
export function typedName(path: string | undefined): string {
  return path === undefined ? 'svc' : quoteWord(path);
}

/** Replaces `svc` in a message's commands by the name that the user typed, so that every command can be pasted. */
export function asTyped(text: string, name: string): string {
  return text.replaceAll(commandStart, () => `${name} `);
}

/**
 * The same for a terminal. Lines of `width` columns never break inside a command: it could not be pasted. Further lines
 * get `indent` spaces, by default as many as the first line.
 */
export function wrapText(text: string, width: number, indent = text.length - text.trimStart().length): string {
  if (columnsOf(text) <= width) return text;
  const pieces = text.replaceAll(wholeCommand, (command) => command.replaceAll(' ', noBreak)).split(' ');
  const lines: string[] = [];
  let line = pieces[0] ?? '';
  for (const piece of pieces.slice(1)) {
    if (line.trim() === '' || columnsOf(line) + 1 + columnsOf(piece) <= width) line += ` ${piece}`;
    else {
      lines.push(line.trimEnd());
      line = ' '.repeat(indent) + piece;
    }
  }
  return [...lines, line].join('\n').replaceAll(noBreak, ' ');
}

function columnsOf(text: string): number {
  return displayWidth(stripVTControlCharacters(text));
}
