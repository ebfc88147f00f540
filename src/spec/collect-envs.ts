import { SvcError } from '../shared/errors.ts';
import { quote } from '../shared/text.ts';
import { readTextFile } from './read-text-file.ts';
import { variableName } from './schema/task.ts';

/** Variables from the command line: `K=V` or `K` each, and dotenv files. */
export interface EnvFlags {
  readonly envFlags: readonly string[];
  readonly envFile?: string | undefined;
  readonly secretFlags: readonly string[];
  readonly secretFile?: string | undefined;
}

interface CollectedEnvs {
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** Bytes. */
const maxEnvFileBytes = 1_048_576;

/**
 * Collects variables from flags and files; flags override files, later ones earlier ones. `readEnv` gives the local
 * variable for a name without a value. Throws SVC_USAGE without ever quoting a value, SVC_MISSING_ENV,
 * SVC_FILE_NOT_FOUND, SVC_FILE_UNREADABLE.
 */
export function collectEnvs(flags: EnvFlags, readEnv: (name: string) => string | undefined): CollectedEnvs {
  return {
    envs: Object.fromEntries([...fromFile(flags.envFile, '--env-file', readEnv), ...fromFlags(flags.envFlags, '--env', readEnv)]),
    secrets: Object.fromEntries([
      ...fromFile(flags.secretFile, '--secret-file', readEnv),
      ...fromFlags(flags.secretFlags, '--secret', readEnv),
    ]),
  };
}

type ReadEnv = (name: string) => string | undefined;
type Pair = readonly [name: string, value: string];

function fromFlags(given: readonly string[], flag: string, readEnv: ReadEnv): readonly Pair[] {
  return given.map((text): Pair => {
    const equals = text.indexOf('=');
    const name = equals === -1 ? text : text.slice(0, equals);
    if (!isName(name)) {
      const hint = 'Names have letters, digits and underscores, and do not begin with a digit.';
      throw new SvcError('SVC_USAGE', `${flag} ${quote(name)}: not the name of a variable.`, { hint });
    }
    return [name, equals === -1 ? local(name, flag, readEnv) : text.slice(equals + 1)];
  });
}

function isName(name: string): boolean {
  return variableName.test(name) && name !== '__proto__';
}

function local(name: string, where: string, readEnv: ReadEnv): string {
  const value = readEnv(name);
  if (value !== undefined) return value;
  throw new SvcError('SVC_MISSING_ENV', `${where}: ${name} is not set in local environment.`, {
    hint: `Set it, or give the value: ${where.startsWith('--') ? `${where} ` : ''}${name}=VALUE`,
  });
}

function fromFile(path: string | undefined, flag: string, readEnv: ReadEnv): readonly Pair[] {
  if (path === undefined) return [];
  const text = readTextFile(path, 'The file', maxEnvFileBytes, (file) => {
    return new SvcError('SVC_FILE_TOO_BIG', `${flag} ${file} is larger than 1 MiB.`);
  });
  const { entries, problems } = parseDotenv(text);
  const all = [
    ...problems,
    ...entries.flatMap(({ name, value, line }) => {
      if (!isName(name)) return [{ line, message: `${quote(name)} is not the name of a variable` }];
      return value?.includes('\0') === true ? [{ line, message: 'a value cannot hold the NUL character' }] : [];
    }),
  ];
  if (all.length > 0) {
    // Without excerpts: the lines may contain secrets.
    const details = all.slice(0, 100).map(({ line, message }) => ({ message, file: path, line, column: 1 }));
    const hint = 'Write one NAME=VALUE on each line, values with spaces in quotes.';
    throw new SvcError('SVC_USAGE', `${flag} ${path} has ${all.length === 1 ? 'a problem' : `${all.length} problems`}.`, {
      hint,
      problems: details,
    });
  }
  return entries.map(({ name, value, line }): Pair => [name, value ?? local(name, `${path}:${line}`, readEnv)]);
}

/** Without a value, the environment provides it. */
interface DotenvEntry {
  readonly name: string;
  readonly value: string | undefined;
  readonly line: number;
}

interface DotenvProblem {
  readonly line: number;
  readonly message: string;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$' };

/**
 * Parses the `NAME=VALUE` lines of a dotenv file: `#` comments, an optional `export`, values in single quotes (literal)
 * or double quotes (with escapes such as `\n`), which may span lines. `$` is an ordinary character. A name alone has no
 * value.
 *
 * Not `util.parseEnv`: it cuts `pass#word` at the `#` and `"a \"b\""` at the second quote, and takes the next line for
 * the value of `A= `. It also skips names alone and invalid lines silently.
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
  /** Consumed characters, including the line break. */
  readonly length: number;
}

const assignment = /^[ \t]*(?:export[ \t]+)?([^\s=#'"]+)[ \t]*(=[ \t]*)?/;

/** End of the text that may belong to the entry at `at`: of its line, or of the closing quote's line. */
function endOfEntry(source: string, at: number): number {
  const lineEnd = source.indexOf('\n', at);
  const end = lineEnd === -1 ? source.length : lineEnd + 1;
  const start = assignment.exec(source.slice(at, end));
  const mark = start?.[2] === undefined ? '' : source.charAt(at + start[0].length);
  if (start === null || (mark !== '"' && mark !== "'")) return end;
  const from = at + start[0].length + 1;
  for (let index = from; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '\\' && mark === '"') index += 1;
    else if (char === mark) {
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
