import { stripVTControlCharacters } from 'node:util';
import type { Ui } from '../ui.ts';

/** Longer lines are shown in parts, characters: a program may never end its line. */
const longestLine = 65_536;

const escape = '\u001B';
const colour = new RegExp(`(${escape}\\[[\\d;]*m)`);

/** Parameters that name a colour, of a palette (38;5;N) or as red, green, blue: an 8 in them conceals nothing. */
const colourParameters = /(?<=[[;])0*[345]8;(0*5;\d*|0*2;\d*;\d*;\d*)/g;

/** Concealed text (8) would hide from the user what a program wrote. */
const conceals = (sequence: string): boolean => /[[;]0*8[;m]/.test(sequence.replaceAll(colourParameters, ''));

/**
 * A line of a program's log for a terminal: keeps colours and tabs. Removes other escape sequences, control characters and
 * marks that reorder text: they could move the cursor, change the terminal's title, or answer in the user's name.
 */
export function logLine(line: string): string {
  const parts = line.split(colour).map((part, index) => {
    if (index % 2 === 1) return conceals(part) ? '' : part;
    return stripVTControlCharacters(part).replaceAll(/[^\P{Control}\t]|\p{Bidi_Control}/gu, '');
  });
  return parts.length === 1 ? parts.join('') : `${parts.join('')}${escape}[0m`;
}

/** Shows the bytes of a program's log: to a terminal as safe lines, otherwise unchanged. */
export async function showLog(chunks: AsyncIterable<Uint8Array>, ui: Pick<Ui, 'outIsTerminal' | 'print' | 'write'>): Promise<void> {
  if (!ui.outIsTerminal) {
    for await (const chunk of chunks) ui.write(chunk);
    return;
  }
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    // Progress bars end their lines with a carriage return. At the end of a chunk, a line feed may follow it.
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) ui.print(logLine(line));
    for (; rest.length > longestLine; rest = rest.slice(longestLine)) ui.print(logLine(rest.slice(0, longestLine)));
  }
  rest += decoder.decode();
  if (rest !== '') ui.print(logLine(rest));
}
