/** One assignment of an env file; without a value it is to come from the environment. */
export interface DotenvEntry {
  readonly name: string;
  readonly value: string | undefined;
  readonly line: number;
}

/** A line that could not be understood. */
export interface DotenvProblem {
  readonly line: number;
  readonly message: string;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$' };

/**
 * Reads `NAME=VALUE` lines as dotenv files have them: `#` comments, an optional `export`, values in single quotes (literal) or double quotes
 * (with `\n` and the like), both of which may span lines. `$` is an ordinary character. A name alone has no value.
 */
export function parseDotenv(text: string): { readonly entries: readonly DotenvEntry[]; readonly problems: readonly DotenvProblem[] } {
  const entries: DotenvEntry[] = [];
  const problems: DotenvProblem[] = [];
  let at = 0;
  let line = 1;
  const source = text.replaceAll('\r\n', '\n');
  while (at < source.length) {
    const { entry, problem, length } = readLine(source.slice(at, endOfEntry(source, at)), line);
    if (entry !== undefined) entries.push(entry);
    if (problem !== undefined) problems.push({ line, message: problem });
    const next = Math.min(source.length, at + length);
    line += source.slice(at, next).split('\n').length - 1;
    at = next;
  }
  return { entries, problems };
}

interface LineResult {
  readonly entry?: DotenvEntry;
  readonly problem?: string;
  /** Characters used up, the line break included. */
  readonly length: number;
}

const assignment = /^[ \t]*(?:export[ \t]+)?([^\s=#'"]+)[ \t]*(=[ \t]*)?/;

/** Where the text that may belong to the entry at `at` ends: the end of its line, or the closing quote's when it spans lines. */
function endOfEntry(source: string, at: number): number {
  const lineEnd = source.indexOf('\n', at);
  const end = lineEnd === -1 ? source.length : lineEnd + 1;
  const start = assignment.exec(source.slice(at, end));
  const quote = start?.[2] === undefined ? '' : source.charAt(at + start[0].length);
  if (start === null || (quote !== '"' && quote !== "'")) return end;
  const from = at + start[0].length + 1;
  for (let index = from; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '\\' && quote === '"') index += 1;
    else if (char === quote) {
      const after = source.indexOf('\n', index);
      return after === -1 ? source.length : after + 1;
    }
  }
  return end;
}

function readLine(text: string, line: number): LineResult {
  const { length } = text;
  const trimmed = text.trim();
  if (trimmed === '' || trimmed.startsWith('#')) return { length };
  const match = assignment.exec(text);
  const [whole = '', name = '', equals] = match ?? [];
  if (match === null || !/^[A-Za-z_]\w*$/.test(name)) return { length, problem: 'expected NAME=VALUE' };
  const rest = text.slice(whole.length).trimEnd();
  if (equals === undefined) {
    return rest === '' || rest.startsWith('#')
      ? { length, entry: { name, value: undefined, line } }
      : { length, problem: 'expected NAME=VALUE' };
  }
  const quoted = /^(?:'([^']*)'|"((?:[^"\\]|\\[^])*)")[ \t]*(?:#.*)?$/.exec(rest);
  if (quoted !== null) return { length, entry: { name, value: quoted[1] ?? unescape(quoted[2] ?? ''), line } };
  if (/^['"]/.test(rest)) return { length, problem: 'the closing quote is missing, or something follows it' };
  return { length, entry: { name, value: withoutComment(rest), line } };
}

/** A comment begins with `#` at the start of the value or after a space. */
function withoutComment(text: string): string {
  for (let at = text.indexOf('#'); at !== -1; at = text.indexOf('#', at + 1)) {
    if (at === 0 || text[at - 1] === ' ' || text[at - 1] === '\t') return text.slice(0, at).trimEnd();
  }
  return text;
}

function unescape(text: string): string {
  return text.replaceAll(/\\([^])/g, (whole, char: string) => escapes[char] ?? whole);
}
