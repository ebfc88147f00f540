import { stripVTControlCharacters } from 'node:util';

const wide = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}/u;
const zeroWidth = /^[\p{Mark}\p{Format}]$/u;

/** Any text as one safe line: no escape sequences or control characters, whitespace folded. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/[\s\p{Control}]+/gu, ' ')
    .trim();
}

/** Like `oneLine`, but with line ends and indentation. */
export function safeLines(text: string): readonly string[] {
  return stripVTControlCharacters(text)
    .split('\n')
    .map((line) =>
      line
        .replaceAll('\t', '  ')
        .replaceAll(/\p{Control}/gu, '')
        .trimEnd(),
    );
}

/** Columns of a character on a terminal: 0, 1 or 2 (Unicode Annex 11, the common ranges). */
function charWidth(char: string): number {
  if (char >= ' ' && char <= '~') return 1;
  if (zeroWidth.test(char)) return 0;
  return wide.test(char) ? 2 : 1;
}

/** Columns of a text on a terminal. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

/** At most `width` columns of a text. A `…` in the last column marks a cut. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 0) return '';
  let kept = '';
  let used = 0;
  for (const char of text) {
    used += charWidth(char);
    if (used > width - 1) break;
    kept += char;
  }
  return `${kept}…`;
}

/** Share for the beginning of a text that is too long: it says what happened, and the end mostly says why. */
const shareOfBeginning = 0.6;

/** The same with the middle cut out. In nested error messages of programs the cause is at the end. */
export function truncateMiddle(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  const beginning = truncate(text, Math.ceil(width * shareOfBeginning));
  const room = width - displayWidth(beginning);
  let end = '';
  let used = 0;
  for (const char of Array.from(text).toReversed()) {
    used += charWidth(char);
    if (used > room) break;
    end = char + end;
  }
  return beginning + end;
}

/** Pads a text with spaces up to `width` columns. */
export function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}
