import { expect, test } from 'vitest';
import { logLine, showLog } from './log-lines.ts';

const escape = '\u001B';

test.for<readonly [what: string, line: string, safe: string]>([
  ['plain text and tabs', 'a\tb  ', 'a\tb  '],
  ['colours, which end with the line', `${escape}[1;31mred${escape}[0m x`, `${escape}[1;31mred${escape}[0m x${escape}[0m`],
  ['no title of the window', `a${escape}]0;title\u0007b`, 'ab'],
  ['no movement of the cursor', `a${escape}[2J${escape}[10Ab`, 'ab'],
  ['no question to the terminal', `a${escape}[6nb${escape}[c`, 'ab'],
  ['no concealed text', `${escape}[8msecret`, `secret${escape}[0m`],
  ['no text concealed beside a colour', `${escape}[38;5;8;8msecret`, `secret${escape}[0m`],
  [
    'grey text, whose colour is number 8',
    `${escape}[38;5;8mgrey ${escape}[1;48;2;8;8;8mx`,
    `${escape}[38;5;8mgrey ${escape}[1;48;2;8;8;8mx${escape}[0m`,
  ],
  ['no lone escape, bell, backspace or C1 character', `a${escape}\u0007\b\u009B2Jb`, 'ab'],
  ['no reordered text', 'a\u202Eb', 'ab'],
])('a terminal gets %s', ([, line, safe]) => {
  expect(logLine(line)).toBe(safe);
});

async function shown(pieces: readonly string[], outIsTerminal: boolean): Promise<readonly string[]> {
  const lines: string[] = [];
  const chunks = (async function* () {
    await Promise.resolve();
    for (const piece of pieces) yield Buffer.from(piece);
  })();
  const ui = { outIsTerminal, print: (line: string) => lines.push(line), write: (chunk: Uint8Array) => lines.push(String(chunk)) };
  await showLog(chunks, ui);
  return lines;
}

test('a sequence that is split between chunks does not reach a terminal', async () => {
  expect(await shown(['one\r', `\ntwo ${escape}]0;ti`, 'tle\u0007end\n10 %\r20 %\rlast'], true)).toEqual([
    'one',
    'two end',
    '10 %',
    '20 %',
    'last',
  ]);
});

test('a pipe gets the bytes unchanged', async () => {
  expect(await shown([`a${escape}[2J\r`, 'b'], false)).toEqual([`a${escape}[2J\r`, 'b']);
});
