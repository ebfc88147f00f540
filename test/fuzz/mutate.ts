import type { Dice } from './dice.ts';
import { anyField } from './grammar.ts';

/** Lines that decide about framing or trust, in forms that parsers are known to read differently. */
const framingLines = [
  'Content-Length: 0',
  'Content-Length: 5',
  'content-length: 05',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length : 5',
  'Content-Length: 0x5',
  'Content-Length:',
  'Content-Length: 9007199254740993',
  'Content_Length: 5',
  'Content-Length\u0000: 5',
  'Transfer-Encoding: chunked',
  'transfer-encoding: Chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: identity, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: ,chunked',
  'Transfer-Encoding: chunked,',
  'Transfer-Encoding:\u000bchunked',
  'Transfer-Encoding: \u00a0chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer_Encoding: chunked',
  ' chunked',
  'Host: b',
  'Host: a:80',
  'Host:',
  'Connection: content-length',
  'Connection: Transfer-Encoding',
  'Connection: close, upgrade',
  'Connection: \u00a0close',
  'Connection: upgrade',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'Expect: x',
  ': a',
  'a',
  '',
] as const;
const framingValues = [
  'chunked',
  '0',
  '5',
  '3, 3',
  '\tchunked\t',
  'chunked\u000b',
  'close',
  'keep-alive',
  'a, a',
  '*',
  '100-continue',
] as const;
const octets = [
  '\u0000',
  '\t',
  '\n',
  '\u000b',
  '\r',
  '\r\n',
  ' ',
  ',',
  ':',
  ';',
  '_',
  '-',
  '0',
  '1',
  '9',
  'a',
  'f',
  'G',
  '"',
  '#',
  '/',
  '*',
  '\u007f',
  '\u0080',
  '\u00a0',
  '\u00ff',
] as const;
const sizeTricks = ['0x', '+', '-', ' ', '00000000000000000', 'ffffffffffffffff', 'g', '\t', ';', '\n', '\r'] as const;

const lineBreak = '\r\n';

/**
 * Applies up to four mutations, which make a message wrong or keep it valid in another form. Some cases stay unchanged.
 */
export function mutate(dice: Dice, text: string): string {
  const count = dice.oneOf([0, 1, 1, 1, 1, 2, 2, 3, 4]);
  let out = text;
  for (let turn = 0; turn < count; turn += 1) out = dice.oneOf(mutations)(dice, out);
  return out;
}

type Mutation = (dice: Dice, text: string) => string;

/** Changes one line. */
const atLine =
  (change: (dice: Dice, line: string) => string): Mutation =>
  (dice, text) => {
    const lines = text.split(lineBreak);
    const index = dice.below(lines.length);
    lines[index] = change(dice, lines[index] ?? '');
    return lines.join(lineBreak);
  };

const withFramingLine = atLine((dice, line) => `${line}${lineBreak}${dice.oneOf(framingLines)}`);
const withSomeField = atLine((dice, line) => `${line}${lineBreak}${anyField[dice.below(anyField.length)] ?? ''}`);
const withOtherValue = atLine(
  (dice, line) => `${line.slice(0, line.indexOf(':') + 1)}${dice.oneOf([' ', '', '  '])}${dice.oneOf(framingValues)}`,
);
const withSizeTrick = atLine((dice, line) => (dice.once(2) ? `${dice.oneOf(sizeTricks)}${line}` : `${line}${dice.oneOf(sizeTricks)}`));
const twice = atLine((_, line) => `${line}${lineBreak}${line}`);

function atOffset(change: (dice: Dice, before: string, after: string) => string): Mutation {
  return (dice, text) => {
    const at = dice.below(text.length + 1);
    return change(dice, text.slice(0, at), text.slice(at));
  };
}

const withOctet = atOffset((dice, before, after) => before + dice.oneOf(octets) + after);
const withOtherOctet = atOffset((dice, before, after) => before + dice.oneOf(octets) + after.slice(1));
const withAnyOctet = atOffset((dice, before, after) => before + String.fromCharCode(dice.below(256)) + after.slice(1));
const withoutSome = atOffset((dice, before, after) => before + after.slice(1 + dice.below(4)));
const cutOff = atOffset((_, before) => before);
const again = atOffset((dice, before, after) => before + before.slice(-dice.below(40)) + after);

function withoutLine(dice: Dice, text: string): string {
  const lines = text.split(lineBreak);
  lines.splice(dice.below(lines.length), 1);
  return lines.join(lineBreak);
}

/** A line end that only some parsers accept. */
function withOtherLineEnd(dice: Dice, text: string): string {
  const parts = text.split(lineBreak);
  if (parts.length < 2) return text;
  const at = 1 + dice.below(parts.length - 1);
  return (
    parts.slice(0, at).join(lineBreak) +
    dice.oneOf(['\n', '\r', '\r\r\n', '\n\r', ' \r\n', '\r\n ', '\r\n\t']) +
    parts.slice(at).join(lineBreak)
  );
}

const mutations = [
  withFramingLine,
  withFramingLine,
  withFramingLine,
  withOtherValue,
  withSomeField,
  withSizeTrick,
  twice,
  withOctet,
  withOctet,
  withOtherOctet,
  withAnyOctet,
  withoutSome,
  cutOff,
  again,
  withoutLine,
  withOtherLineEnd,
] as const satisfies readonly Mutation[];
