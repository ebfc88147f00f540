import { stripVTControlCharacters } from 'node:util';
import { displayWidth } from './display-text.ts';

/** `svc` as our own texts name it, where one of its words follows; not in a path, and not where it is only spoken of. */
const commandStart =
  /(?<![\w/.-])svc (?=(?:serve|controller|catalog|status|launch|exec|logs|down|check|offers|completion|help)\b|\[|--?[a-z])/g;

/** The words of a command, up to the end of its sentence or of what encloses it. */
const wholeCommand = new RegExp(`${commandStart.source}.*?(?=[;,()\`]|[.:?](?: |$)|$)`, 'g');

/** Stands for a space at which a line must not end, and takes as much room. */
const noBreak = '\u00A0';

/** One word of sh that stands for the text. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** How the person at the terminal calls us, as a word of sh; `path` is what the wrapper was called by. */
export function typedName(path: string | undefined): string {
  return path === undefined ? 'svc' : quoteWord(path);
}

/** A text of ours in which every command can be pasted: `svc` in front of it becomes what was typed. */
export function asTyped(text: string, name: string): string {
  return text.replaceAll(commandStart, () => `${name} `);
}

/**
 * The same for a terminal: lines end between words, before `width` columns are full, and never inside a command, which could not be pasted
 * then. Further lines begin with `indent` spaces, by default as many as the first.
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
