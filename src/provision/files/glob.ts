/**
 * Git's patterns (`wildmatch` of git's documentation of gitignore) as regular expressions. Texts and patterns are bytes, one character each, as
 * `toBytes` makes them: to git, `?` is one byte and not one letter.
 */

/** A text as its bytes in UTF-8, one character for each. */
export function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/**
 * The pattern as a regular expression for whole paths; undefined when nothing can match it. `*`, `?` and sets do not match a slash, `**` does
 * where it stands alone between slashes.
 */
export function globToRegExp(pattern: string): RegExp | undefined {
  let source = '';
  let at = 0;
  while (at < pattern.length) {
    const char = pattern.charAt(at);
    if (char === '*') {
      const end = endOfStars(pattern, at);
      const isDeep = end - at > 1 && (at === 0 || pattern[at - 1] === '/') && /^(?:$|\/|\\\/)/.test(pattern.slice(end));
      const skipsSlash = isDeep && pattern[end] === '/';
      source += skipsSlash ? '(?:.*/)?' : isDeep ? '.*' : '[^/]*';
      at = skipsSlash ? end + 1 : end;
    } else if (char === '[') {
      const set = readSet(pattern, at + 1);
      if (set === undefined) return undefined;
      source += set.source;
      at = set.end;
    } else if (char === '\\') {
      if (at + 1 >= pattern.length) return undefined;
      source += literal(pattern.charCodeAt(at + 1));
      at += 2;
    } else {
      source += char === '?' ? '[^/]' : literal(char.charCodeAt(0));
      at += 1;
    }
  }
  return new RegExp(`^${source}$`, 's');
}

function endOfStars(pattern: string, start: number): number {
  let end = start;
  while (pattern[end] === '*') end += 1;
  return end;
}

const literal = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`;

const slash = 0x2f;
const within =
  (...ranges: readonly (readonly [first: string, last: string])[]) =>
  (byte: number): boolean =>
    ranges.some(([first, last]) => byte >= first.charCodeAt(0) && byte <= last.charCodeAt(0));

/** The classes of POSIX, for ASCII alone as in git. */
const classes: Readonly<Record<string, (byte: number) => boolean>> = {
  alnum: within(['0', '9'], ['A', 'Z'], ['a', 'z']),
  alpha: within(['A', 'Z'], ['a', 'z']),
  blank: (byte) => byte === 0x20 || byte === 0x09,
  cntrl: (byte) => byte < 0x20 || byte === 0x7f,
  digit: within(['0', '9']),
  graph: within(['!', '~']),
  lower: within(['a', 'z']),
  print: within([' ', '~']),
  punct: within(['!', '/'], [':', '@'], ['[', '`'], ['{', '~']),
  space: (byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d),
  upper: within(['A', 'Z']),
  xdigit: within(['0', '9'], ['A', 'F'], ['a', 'f']),
};

/** A set from behind its bracket on; undefined when it has no end or names no known class: then the whole pattern matches nothing. */
function readSet(pattern: string, start: number): { readonly source: string; readonly end: number } | undefined {
  const members = new Set<number>();
  let at = start;
  const isNegated = pattern[at] === '!' || pattern[at] === '^';
  if (isNegated) at += 1;
  const first = at;
  /** The byte a range may begin with. */
  let previous: number | undefined;
  for (;;) {
    let byte = pattern.charCodeAt(at);
    if (Number.isNaN(byte)) return undefined;
    const char = pattern.charAt(at);
    if (char === ']' && at > first) break;
    if (char === '-' && previous !== undefined && at + 1 < pattern.length && pattern[at + 1] !== ']') {
      at += pattern[at + 1] === '\\' ? 2 : 1;
      const last = pattern.charCodeAt(at);
      if (Number.isNaN(last)) return undefined;
      for (let member = previous; member <= last; member += 1) members.add(member);
      previous = undefined;
    } else if (char === '[' && pattern[at + 1] === ':') {
      const close = pattern.indexOf(']', at + 2);
      if (close === -1) return undefined;
      if (close > at + 2 && pattern[close - 1] === ':') {
        const isMember = classes[pattern.slice(at + 2, close - 1)];
        if (isMember === undefined) return undefined;
        for (let member = 0; member < 256; member += 1) if (isMember(member)) members.add(member);
        previous = undefined;
        at = close;
      } else {
        members.add(byte);
        previous = byte;
      }
    } else {
      if (char === '\\') {
        at += 1;
        byte = pattern.charCodeAt(at);
        if (Number.isNaN(byte)) return undefined;
      }
      members.add(byte);
      previous = byte;
    }
    at += 1;
  }
  const chosen = Array.from({ length: 256 }, (_byte, byte) => byte).filter((byte) => members.has(byte) !== isNegated && byte !== slash);
  // An empty set matches nothing.
  return { source: `[${chosen.map(literal).join('')}]`, end: at + 1 };
}
