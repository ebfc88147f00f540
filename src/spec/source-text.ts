import { printable } from '../shared/text.ts';

/** Characters of a line that an excerpt shows; longer lines are cut around the caret. */
const excerptWidth = 100;

/** A file's text with its lines. Converts offsets into positions and excerpts. */
export class SourceText {
  readonly text: string;
  /** For messages. */
  readonly file: string;
  readonly #lineStarts: readonly number[];
  #secretLines: ReadonlyMap<number, number> | undefined;

  constructor(text: string, file: string) {
    this.text = text;
    this.file = file;
    const starts = [0];
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
    this.#lineStarts = starts;
  }

  /** Line and column of an offset, both from 1. Offsets beyond the end give the last position. */
  position(offset: number): { readonly line: number; readonly column: number } {
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const column = Math.min(offset, this.text.length) - (this.#lineStarts[low] ?? 0) + 1;
    return { line: low + 1, column: Math.max(1, column) };
  }

  /** The line of an offset and the line before it, numbered, with a caret below. Values below `secrets:` are masked. */
  excerpt(offset: number): string {
    const { line, column } = this.position(offset);
    const width = String(line).length;
    const rows: string[] = [];
    const before = line > 1 ? this.#shown(line - 1).trimEnd() : '';
    if (before !== '') rows.push(`${String(line - 1).padStart(width)} | ${cut(before, 0)}`);
    const text = this.#shown(line);
    const start = column > excerptWidth - 20 ? column - Math.floor(excerptWidth / 2) : 0;
    rows.push(`${String(line).padStart(width)} | ${cut(text, start)}`);
    const caret = Math.min(column - 1, text.length) - start + (start > 0 ? 1 : 0);
    rows.push(`${' '.repeat(width)} | ${' '.repeat(Math.max(0, caret))}^`);
    return rows.join('\n');
  }

  #shown(line: number): string {
    const start = this.#lineStarts[line - 1] ?? 0;
    const end = this.#lineStarts[line] ?? this.text.length + 1;
    const text = this.text.slice(start, end - 1);
    this.#secretLines ??= findSecretLines(this.text.split('\n'));
    const visible = this.#secretLines.get(line);
    return printable(visible === undefined ? text.replace(/\r$/, '') : `${text.slice(0, visible)}***`);
  }
}

function cut(text: string, start: number): string {
  const end = start + excerptWidth;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${text.length > end ? '…' : ''}`;
}

/** Lines with secrets, and the characters before the value. By lines, because an invalid file must be masked too. */
function findSecretLines(lines: readonly string[]): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  let sectionIndent: number | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const indent = line.length - line.trimStart().length;
    // A list may stand at the indentation of its key.
    if (sectionIndent !== undefined && (indent > sectionIndent || (indent === sectionIndent && line.trimStart().startsWith('- ')))) {
      const value = /^\s*["']?[A-Za-z_]\w*["']?\s*:\s+(?=\S)/.exec(line);
      if (value !== null) found.set(index + 1, value[0].length);
      else if (!/^\s*["']?[A-Za-z_]\w*["']?\s*:\s*$/.test(line)) found.set(index + 1, indent);
      continue;
    }
    sectionIndent = undefined;
    const section = /(?:^|[\s{,])["']?secrets["']?\s*:/.exec(line);
    if (section === null) continue;
    sectionIndent = indent;
    const end = section.index + section[0].length;
    if (line.slice(end).trim() !== '') found.set(index + 1, end + 1);
  }
  return found;
}
